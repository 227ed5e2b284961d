//! One suite over every store: what an engine must do, whatever it is made of.
//!
//! An engine's test file says how to open it and calls [`run`]; every case then has a name of its
//! own, such as `embedded::contract::conflict_on_a_moved_row`.
//!
//! | suite | what it proves |
//! |---|---|
//! | `contract` | each promise of the [`Engine`] trait, one at a time |
//! | `histories` | random histories are answered like the oracle answers them; concurrent ones add up |
//! | `counting` | counters, unique counts, attendance, boards and limits like the oracle and like naive models |
//! | `crash` | a failure at any step: answered means present, otherwise all or nothing |
//! | `jobs` | long work goes on wherever it was stopped |
//! | `forgetting` | what comes after the request begins anew, however far its job is |
//! | `rooms` | waiting rooms like a naive model; each thing that was found broken in a system of this kind |
//! | `verify` | rows of every kind are recounted: sound ones are left alone, damage is named and put right, also while others write |
//! | `shared` | several servers on one store: no like twice, no limit passed, no answer that came too late |
//!
//! A store that is reached over a network says also how to get there through one that fails, and is held to these
//! (see [`Networked`]):
//!
//! | suite | what it proves |
//! |---|---|
//! | `cut` | a connection that is cut at any message of a commit: told as it was, done once |
//! | `network` | answers that are swallowed, servers that hang, faults at random: what was answered is there, once |

mod auditor;
mod contract;
mod counting;
mod crash;
mod driver;
mod forgetting;
mod histories;
mod jobs;
mod joins;
pub mod network;
mod random;
mod rooms;
mod running;
mod sample;
mod shared;
mod stand;
mod sweeper;
mod transitions;
mod universe;
mod verify;
mod walk;

use std::sync::Arc;

use libtest_mimic::Arguments;
pub use libtest_mimic::Trial;
use tally_engine::Engine;

pub use joins::join;
pub use network::Networked;
pub use shared::linear;
use stand::Stand;

/// How to open the engine under test.
pub trait EngineFactory: Send + Sync + 'static {
    /// The engine.
    type Engine: Engine;
    /// Where one store lives: a folder, a schema, a prefix. Dropped when its case is over.
    type Place: Send + Sync;

    /// A place with nothing in it, that no other case uses.
    fn place(&self) -> Self::Place;

    /// Opens the store in a place; a second time, with what was left there.
    fn open(&self, place: &Self::Place) -> impl Future<Output = Self::Engine> + Send;

    /// Whether a store that is closed can be opened again with what it held.
    fn reopens(&self) -> bool {
        true
    }

    /// Whether several engines may be open on one place at once. Otherwise several servers are several
    /// runners on one engine, which is the same thing to the rules.
    fn servers(&self) -> bool {
        false
    }

    /// Waits until indexes that follow behind a commit have caught up. Most stores have none.
    fn drain(&self, _engine: &Self::Engine) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// Every case of the suite for one engine, named `name::suite::case`.
pub fn trials<F: EngineFactory>(name: &str, factory: F) -> Vec<Trial> {
    let factory = Arc::new(factory);
    let suites = [
        ("contract", contract::cases::<F>()),
        ("histories", histories::cases::<F>()),
        ("counting", counting::cases::<F>()),
        ("crash", crash::cases::<F>()),
        ("jobs", jobs::cases::<F>()),
        ("forgetting", forgetting::cases::<F>()),
        ("rooms", rooms::cases::<F>()),
        ("verify", verify::cases::<F>()),
        ("shared", shared::cases::<F>()),
    ];
    named(name, &factory, suites)
}

/// Every case for a store behind a network that fails, named as [`trials`] names them.
pub fn network_trials<F: Networked>(name: &str, factory: F) -> Vec<Trial> {
    let suites = [("cut", network::cut_cases::<F>()), ("network", network::cases::<F>())];
    named(name, &Arc::new(factory), suites)
}

fn named<F: EngineFactory>(
    name: &str,
    factory: &Arc<F>,
    suites: impl IntoIterator<Item = (&'static str, Vec<Case<F>>)>,
) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (suite, cases) in suites {
        for (case, run) in cases {
            let factory = factory.clone();
            trials.push(Trial::test(format!("{name}::{suite}::{case}"), move || {
                // Several threads, because an engine may block one while another waits for it.
                let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
                runtime.block_on(run(Stand::new(factory)));
                Ok(())
            }));
        }
    }
    trials
}

/// The whole of an engine's test file: runs these trials with the arguments of the command line.
pub fn run(trials: Vec<Trial>) -> ! {
    libtest_mimic::run(&Arguments::from_args(), trials).exit()
}

/// A case's name, and what it does on a stand of its own.
type Case<F> = (&'static str, fn(Stand<F>) -> std::pin::Pin<Box<dyn Future<Output = ()>>>);

/// Lists async functions over a [`Stand`] as cases, each named after itself.
macro_rules! cases {
    ($($module:ident: $($case:ident),+ $(,)?);+ $(;)?) => {
        vec![$($((stringify!($case), |stand| Box::pin($module::$case(stand)))),+),+]
    };
}
use cases;
