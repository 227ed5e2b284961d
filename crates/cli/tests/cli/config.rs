//! `tally config` and `tally openapi`.

use crate::world::World;

#[test]
fn mistakes_come_with_line_and_hint() {
    let world = World::new();
    world.write("wrong.toml", "listen = \"127.0.0.1:7700\"\nstorr = \"embedded:x\"\n\n[bounds]\nbody_bytes_max = 1\n");
    let ran = world.run(&["config", "check", "wrong.toml"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran}");
    for words in [
        "the settings have problems",
        "wrong.toml:2:1: unknown key `storr`",
        "hint: did you mean `store`?",
        "wrong.toml:5:18",
    ] {
        assert!(ran.err.contains(words), "no `{words}` in: {ran}");
    }
    let absent = world.run(&["config", "check", "absent.toml"]);
    assert!(absent.code == 2 && absent.err.contains("cannot read the settings file"), "{absent}");
    world.write("right.toml", "listen = \"127.0.0.1:0\"\n");
    let right = world.run(&["config", "check", "right.toml"]);
    assert_eq!((right.code, right.out.as_str()), (0, "right.toml has no problems.\n"), "{right}");
}

#[test]
fn what_the_server_would_use_here_is_checked_and_shown() {
    let world = World::new();
    let none = world.run(&["config", "check"]);
    assert!(none.code == 0 && none.out.contains("no settings file"), "{none}");
    world.write("tally.toml", "sync = \"100ms\"\n");
    let warned = world.run(&["config", "check"]);
    assert!(warned.code == 0 && warned.out.contains("warning: sync = \"100ms\""), "{warned}");
    let mut command = world.tally();
    command.args(["config", "show", "--listen", "127.0.0.1:1"]).env("TALLY_ADMIN_KEY", "a-secret");
    let shown = crate::world::ran(&mut command);
    assert!(shown.out.contains("flag --listen") && shown.out.contains("tally.toml:1:1"), "{shown}");
    assert!(!shown.out.contains("a-secret"), "{shown}");
}

#[test]
fn defaults_and_contract_are_printed_whole() {
    let world = World::new();
    let defaults = world.run(&["config", "defaults"]);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tally.toml");
    assert_eq!(defaults.out, std::fs::read_to_string(file).unwrap());
    let contract = world.run(&["openapi"]).json();
    assert_eq!(contract["openapi"], "3.1.0");
    assert!(contract["paths"]["/v1/relations/{relation}/{object}/{subject}"]["put"].is_object());
}

#[test]
fn every_command_explains_itself() {
    let world = World::new();
    let commands = [
        "serve", "like", "unlike", "relate", "count", "list", "read", "verify", "backup", "restore", "key", "doctor",
        "config", "openapi",
    ];
    let help = world.run(&["--help"]);
    for command in commands {
        assert!(help.out.contains(&format!("\n  {command} ")), "{command}: {help}");
        assert_eq!(world.run(&[command, "--help"]).code, 0, "{command}");
    }
    assert!(help.out.contains("Examples:") && help.out.contains("Exit codes:"), "{help}");
}
