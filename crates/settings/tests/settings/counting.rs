//! What is declared to be counted.

use tally_core::Name;
use tally_core::catalog::{Algorithm, Per, Ties};
use tally_settings::render_show;

use crate::{assert_problems, file, load, with_file};

#[test]
fn what_is_counted_is_checked_to_the_last_word() {
    let text = r#"[counters.views]
requires = "object.status =="
last_at = "yes"
rate_limit = "30/min per subject"
lastat = true
[counters]
x = 1
[uniques.dau]
rate_limit = "30/fortnight"
time_zone = "UTC"
[attendance.daily]
time_zone = "Asia/Seol"
rate_limit = "postin per subject"
[attendance.Daily]
[boards.weekly]
ties = "share"
season = "every monday"
best_of = 1
rate_limit = 30
[boards.x]
season = "0 0 30 2 *"
rate_limit = "30"
[relations.like]
rate_limit = "30/min per member"
[board.x]
"#;
    let not_a_rate = "`30/fortnight` is not a rate\n  hint: write an amount and a time, such as 100/min";
    assert_problems(
        "counted",
        text,
        &[
            "counted.toml:2:12: `requires` is not a condition",
            "counted.toml:3:11: `last_at`: a string where true or false belongs",
            "counted.toml:4:14: `rate_limit`: there is no `subject` to count per here\n  hint: write per key or in all",
            "counted.toml:5:1: unknown key `lastat`\n  hint: did you mean `last_at`?",
            "counted.toml:7:5: `x`: a number where a table belongs\n  hint: write [counters.NAME]",
            &format!("counted.toml:9:14: `rate_limit`: {not_a_rate}"),
            "counted.toml:10:1: unknown key `time_zone`\n  hint: a unique count has rate_limit",
            "counted.toml:12:13: `time_zone`: there is no time zone `Asia/Seol`\n  hint: did you mean `Asia/Seoul`?",
            "counted.toml:13:14: `rate_limit`: there is no limit `postin`\n  hint: write a rate such as 30/min, or declare",
            "counted.toml:14:13: `Daily` cannot be the name of an attendance sheet",
            "counted.toml:16:8: `ties`: there is no policy `share`\n  hint: did you mean `shared`?",
            "counted.toml:17:10: `season`: `every monday` is not when a season can begin\n  hint: write minute, hour,",
            "counted.toml:18:11: `best_of`: a number where true or false belongs",
            "counted.toml:19:14: `rate_limit`: a number where a string belongs\n  hint: write \"30/min per member\"",
            "counted.toml:21:10: `season`: `0 0 30 2 *` is not when a season can begin",
            "counted.toml:22:14: `rate_limit`: there is no limit `30`\n  hint: write a rate such as 30/min",
            "counted.toml:24:14: `rate_limit`: there is no `member` to count per here\n  hint: write per subject, per object or in all",
            "counted.toml:25:2: unknown key `board`\n  hint: did you mean `boards`?",
        ],
    );
}

#[test]
fn limits_of_ones_own_may_have_any_name_but_are_tables() {
    let text = r#"[relations.like]
rate_limit = "postin"
[relations.follow]
rate_limit = "large per object"
[limits.connections_max]
rate = "1/s"
[limits.posting]
rate = "5/s"
[limits.strange]
algorithm = "leaky"
[limits.large]
rate = "5000/s"
algorithm = "sliding_log"
[limits]
other = "100/min"
conections_max = 5
body_bytes_max = 2048
"#;
    assert_problems(
        "limits",
        text,
        &[
            "limits.toml:2:14: `rate_limit`: there is no limit `postin`\n  hint: did you mean `posting`?",
            "limits.toml:9:9: `limits.strange`: `rate` is missing\n  hint: write an amount and a time",
            "limits.toml:10:13: `algorithm`: there is no algorithm `leaky`\n  hint: write \"sliding_log\", \"sliding_window\" or",
            "limits.toml:12:8: `rate`: a sliding log remembers every use, so it takes at most 1000\n  hint: above that choose",
            "limits.toml:15:9: `other`: a string where a table belongs\n  hint: write [limits.NAME] with its keys below",
            "limits.toml:16:18: `conections_max`: a number where a table belongs\n  hint: write [limits.NAME] with its keys below",
        ],
    );
}

#[test]
fn what_is_declared_adds_to_what_is_built_in() {
    let text = r#"[counters.views]
requires = 'object.status == "published"'
last_at = true
[counters.plays]
rate_limit = "600/min"
[uniques.reach]
rate_limit = "posting in all"
[attendance.daily]
time_zone = "Asia/Seoul"
[boards.weekly]
ties = "dense"
season = "0 0 * * MON Asia/Seoul"
best_of = true
rate_limit = "posting"
[limits]
connections_max = 7
posting = { rate = "100/min", algorithm = "token_bucket" }
[relations.like]
rate_limit = "30/min per object"
"#;
    let settings = load(&with_file(&file("declared", text)), &[]).unwrap();
    let (catalog, name) = (settings.catalog(), |text| Name::new(text).unwrap());
    let counting = &catalog;
    let views = counting.counter(&name("views")).unwrap();
    assert!(views.requires.is_some() && views.last_at && views.rate_limit.is_none());
    let plays = counting.counter(&name("plays")).unwrap().rate_limit.clone().unwrap();
    assert_eq!((plays.limit.name.as_str(), plays.limit.amount, plays.per), ("counters.plays", 600, Per::Object));
    let reach = counting.unique(&name("reach")).unwrap().rate_limit.clone().unwrap();
    assert_eq!((reach.limit.name.as_str(), reach.limit.algorithm), ("posting", Algorithm::TokenBucket));
    assert_eq!(reach.per, Per::All);
    assert_eq!(counting.sheet(&name("daily")).unwrap().time_zone.iana_name(), Some("Asia/Seoul"));
    let weekly = counting.board(&name("weekly")).unwrap();
    assert!(weekly.ties == Ties::Dense && weekly.best_of && weekly.season.is_some());
    assert_eq!(weekly.rate_limit.as_ref().map(|limit| limit.per), Some(Per::Subject));
    assert_eq!(counting.limit(&name("posting")).unwrap().amount, 100);
    assert_eq!(settings.bounds.connections_max, 7);
    let like = catalog.relation(&name("like")).unwrap().rate_limit.clone().unwrap();
    assert_eq!((like.limit.name.as_str(), like.per), ("relations.like", Per::Object));
    for built_in in [counting.unique(&name("dau")).is_ok(), counting.board(&name("points")).is_ok()] {
        assert!(built_in);
    }
    let shown = render_show(&settings);
    for part in ["[counters.views]\nrequires = ", "[limits.posting]\nrate = ", "[uniques.dau]\n", "declared.toml:12:1"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let again = load(&with_file(&file("declared-shown", &shown)), &[]).unwrap().catalog();
    assert_eq!(again.limit(&name("posting")).unwrap(), counting.limit(&name("posting")).unwrap());
    assert_eq!(again.boards().count(), counting.boards().count());
}
