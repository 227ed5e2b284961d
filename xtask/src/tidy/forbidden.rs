//! Words that have no place in the code: skipped tests, unfinished work, `unsafe`, sleeps in tests.

use anyhow::Result;

use super::Finding;
use super::source::{File, Tree, has_word};

/// Files that may use `unsafe`, and why.
const UNSAFE: &[(&str, &str)] = &[];

/// Files of tests that may sleep, and why.
const SLEEPS: &[(&str, &str)] = &[
    ("crates/simulator/tests/follow.rs", "virtual time: nothing waits for a clock"),
    ("crates/engine/tests/due.rs", "virtual time: nothing waits for a clock"),
    ("crates/cli/tests/cli/world.rs", "`until` polls another process for a condition, with a bound"),
    ("crates/cli/tests/support/wait.rs", "`until` polls another process for a condition, with a bound"),
];

/// A skipped test is a hole that nobody sees.
pub(crate) fn no_ignore(tree: &Tree) -> Result<Vec<Finding>> {
    Ok(find(
        tree.rust(),
        &["#[ignore]", "#[ignore ="],
        "make the test pass everywhere or remove it; nothing is skipped",
    ))
}

/// Work that is not done yet does not land.
pub(crate) fn no_unfinished(tree: &Tree) -> Result<Vec<Finding>> {
    Ok(find(tree.rust(), &["todo!", "unimplemented!", "dbg!"], "finish it, or return a typed error"))
}

/// `unsafe` needs a reason in the list above.
pub(crate) fn no_unsafe(tree: &Tree) -> Result<Vec<Finding>> {
    let advice =
        "use a safe crate of the field, or add the file with a reason to UNSAFE in xtask/src/tidy/forbidden.rs";
    Ok(find(tree.rust().filter(|file| !listed(UNSAFE, file)), &["unsafe"], advice))
}

/// A sleep in a test is a guess about time: too short it flakes, too long it wastes everyone's day.
pub(crate) fn no_sleep_in_tests(tree: &Tree) -> Result<Vec<Finding>> {
    Ok(tree.rust().filter(|file| !listed(SLEEPS, file)).flat_map(sleeps).collect())
}

/// Kinds of rows that a store lays out from their declaration. Only edges and counters have a form of their own, subjects a mood of Redis,
/// and jobs the newest stamp.
const DECLARED: &[&str] = &[
    "Object", "Replay", "ApiKey", "Names", "Touched", "Unique", "Limit", "Sheet", "Day", "Chunk", "Attendee", "Board",
    "Score", "Sequence", "Ticket", "Entry",
];

/// What a store would need to go by one kind of order: it knows places in orders, whoever stands there.
const OF_ONE_ORDER: &[&str] = &[
    "Score",
    "ScoreKey",
    "Board",
    "BoardKey",
    "Ticket",
    "TicketKey",
    "TicketState",
    "OrderKey::Board",
    "OrderKey::Queue",
];

/// An engine that learns what a kind of row means is a place that the next kind is forgotten in.
pub(crate) fn thin_engines(tree: &Tree) -> Result<Vec<Finding>> {
    let engines = ["crates/embedded/src/", "crates/postgres/src/", "crates/redis/src/"];
    let of_engines = |file: &&File| engines.iter().any(|engine| file.path.starts_with(engine));
    let mut findings = Vec::new();
    for file in tree.rust().filter(of_engines).filter(|file| !is_tests_of_its_crate(tree, file)) {
        let tests_begin = file.tests_begin().unwrap_or(usize::MAX);
        for (number, line) in file.code_lines().filter(|(number, _)| *number < tests_begin) {
            let of_kind =
                |kind: &&&str| ["Key", "Row", "RowKind"].iter().any(|of| has_word(line, &format!("{of}::{kind}")));
            let named = DECLARED.iter().find(of_kind).or_else(|| OF_ONE_ORDER.iter().find(|name| has_word(line, name)));
            if let Some(name) = named {
                let advice = "a store knows cells and places and no kinds; say what is special in its impl of Kind (core/src/<capability>/rows.rs)";
                findings.push(Finding::new(file.place(number), format!("`{name}`: {advice}")));
            }
        }
    }
    Ok(findings)
}

/// A file that its crate has for tests alone.
fn is_tests_of_its_crate(tree: &Tree, file: &File) -> bool {
    let Some((folder, name)) = file.path.rsplit_once('/') else { return false };
    if name.ends_with("_tests.rs") {
        return true;
    }
    let declared = format!("#[cfg(test)]\nmod {};", name.trim_end_matches(".rs"));
    tree.rust().any(|lib| lib.path == format!("{folder}/lib.rs") && lib.text.contains(&declared))
}

fn sleeps(file: &File) -> Vec<Finding> {
    let tests_begin = if file.is_test_file() { 0 } else { file.tests_begin().unwrap_or(usize::MAX) };
    file.code_lines()
        .filter(|(number, line)| *number >= tests_begin && (has_word(line, "sleep(") || has_word(line, "sleep_until(")))
        .map(|(number, _)| {
            Finding::new(
                file.place(number),
                "wait for the condition itself (a channel, a poll with a deadline), or list the file with a reason in SLEEPS in xtask/src/tidy/forbidden.rs",
            )
        })
        .collect()
}

fn listed(list: &[(&str, &str)], file: &File) -> bool {
    list.iter().any(|(path, _)| *path == file.path)
}

fn find<'a>(files: impl Iterator<Item = &'a File>, words: &[&str], advice: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (number, line) in file.code_lines() {
            for word in words.iter().filter(|word| has_word(line, word)) {
                findings.push(Finding::new(file.place(number), format!("`{word}`: {advice}")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        Tree { files: vec![File::new(path, text.into())] }
    }

    #[test]
    fn skipped_tests_are_found() {
        for attribute in ["#[ignore]", "#[ignore = \"slow\"]"] {
            assert_eq!(no_ignore(&tree("a.rs", &format!("#[test]\n{attribute}\nfn a() {{}}"))).unwrap().len(), 1);
        }
    }

    #[test]
    fn unfinished_work_is_found() {
        for word in ["todo!()", "unimplemented!()", "dbg!(1)"] {
            assert_eq!(no_unfinished(&tree("a.rs", word)).unwrap().len(), 1, "{word}");
        }
    }

    #[test]
    fn unsafe_is_found_and_the_lint_that_denies_it_is_not() {
        assert_eq!(no_unsafe(&tree("a.rs", "let x = unsafe { y };")).unwrap().len(), 1);
        assert!(no_unsafe(&tree("a.rs", "#![forbid(unsafe_code)]")).unwrap().is_empty());
    }

    #[test]
    fn sleeps_are_found_in_tests_and_left_alone_elsewhere() {
        let line = "tokio::time::sleep(a).await;";
        assert_eq!(no_sleep_in_tests(&tree("crates/a/tests/a.rs", line)).unwrap().len(), 1);
        assert!(no_sleep_in_tests(&tree("crates/a/src/a.rs", line)).unwrap().is_empty());
        let unit = format!("{line}\n#[cfg(test)]\nmod tests {{\n{line}\n}}");
        assert_eq!(no_sleep_in_tests(&tree("crates/a/src/a.rs", &unit)).unwrap().len(), 1);
    }

    #[test]
    fn engines_name_no_kind_but_those_with_a_form_of_their_own() {
        for (line, wrong) in [
            ("Key::Attendee(sheet, who)", 1),
            ("RowKind::Limit =>", 1),
            ("Key::Edge(key)", 0),
            ("Row::Counter(value)", 0),
            ("if let Row::Score(score) = row {", 1),
            ("fn order(&self, board: &BoardKey) {", 1),
            ("let Score { score, reached } = place;", 1),
            ("OrderKey::Queue(room) =>", 1),
            ("place.score < other.score", 0),
            ("let board_score = scores(place);", 0),
        ] {
            assert_eq!(thin_engines(&tree("crates/redis/src/a.rs", line)).unwrap().len(), wrong, "{line}");
            assert!(thin_engines(&tree("crates/core/src/a.rs", line)).unwrap().is_empty());
        }
        let unit = "#[cfg(test)]\nmod tests {\n    Key::Attendee(sheet, who)\n}";
        assert!(thin_engines(&tree("crates/redis/src/a.rs", unit)).unwrap().is_empty());
        let file = |path: &str, text: &str| File::new(path, text.into());
        let code = file("crates/redis/src/a.rs", "Key::Score(key)");
        let with_tests = Tree { files: vec![code, file("crates/redis/src/lib.rs", "#[cfg(test)]\nmod a;")] };
        assert!(thin_engines(&with_tests).unwrap().is_empty());
    }
}
