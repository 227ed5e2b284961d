//! Unique counts.

use crate::rows::Sketch;

#[test]
fn sketches_are_small_and_right() {
    let error = |members: u32, trials: u32| {
        let squares: f64 = (0..trials)
            .map(|trial| {
                let mut sketch = Sketch::default();
                (0..members).for_each(|member| sketch.add(&format!("{trial}/{member}")));
                assert!(sketch.to_bytes().len() <= 12 * 1024, "{} bytes", sketch.to_bytes().len());
                (sketch.estimate() as f64 / f64::from(members) - 1.0).powi(2)
            })
            .sum();
        (squares / f64::from(trials)).sqrt()
    };
    assert!(error(20_000, 12) <= 0.0081);
    assert!(error(1_000, 60) <= 0.0081);
    let mut sketch = Sketch::default();
    sketch.add("ann");
    assert!(sketch.to_bytes().len() < 64, "one member needs {} bytes", sketch.to_bytes().len());
    for members in [0, 1, 7, 9, 200, 1_000, 3_000, 30_000] {
        let mut sketch = Sketch::default();
        (0..members).for_each(|member| sketch.add(&member.to_string()));
        let read = Sketch::from_bytes(&sketch.to_bytes()).unwrap();
        assert_eq!((&read, read.estimate(), read.to_bytes()), (&sketch, sketch.estimate(), sketch.to_bytes()));
        // What is read goes on like what it was written from.
        let (mut here, mut there) = (sketch, read);
        here.add("one more");
        there.add("one more");
        assert_eq!(here.estimate(), there.estimate());
    }
    assert!(Sketch::from_bytes(b"nonsense").is_none());
}
