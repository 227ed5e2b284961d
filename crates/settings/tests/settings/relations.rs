//! Relations in the file.

use super::*;

#[test]
fn relations_are_checked_to_the_last_word() {
    let text = r#"[relations.bookmark]
read = "pubic"
requires_objct = true
requires_object = "yes"
limit_per_subject = 0
one_of = ["like", "love", "like", "Wow", 3]
meta = { memo = "text", size = 5, good = "string(500)" }
mutable_meta = 1
when.relate = "object.status =="
when.unrelate = "request.auth != null"
when.write = "true"
when.read = true

[relations.Like]
read = "public"

[relations]
follow = "public"

[relations.reaction]
limit_per_subject = -1
one_of = []
meta = "string"
colour = "red"
"#;
    assert_problems(
        "relations",
        text,
        &[
            "relations.toml:2:8: `read`: there is no policy `pubic`\n  hint: did you mean `public`?",
            "relations.toml:3:1: unknown key `requires_objct`\n  hint: did you mean `requires_object`?",
            "relations.toml:4:19: `requires_object`: a string where true or false belongs",
            "relations.toml:5:21: `limit_per_subject`: 0 would refuse every edge\n  hint: leave it out for no limit",
            "relations.toml:6:27: `one_of` names `like` twice\n  hint: remove one of them",
            "relations.toml:6:35: `one_of`: `\"Wow\"` cannot be the name of a kind",
            "relations.toml:6:42: `one_of`: `3` cannot be the name of a kind",
            "relations.toml:7:17: `meta.memo`: `text` is not a type",
            "relations.toml:7:32: `meta.size`: a number where a type belongs",
            "relations.toml:8:16: `mutable_meta`: a number where true or false belongs",
            "relations.toml:9:15: `when.relate` is not a condition",
            "relations.toml:10:17: `when.unrelate` is not a condition: unknown name `request`",
            "relations.toml:11:6: unknown key `when.write`",
            "relations.toml:12:13: `when.read`: a boolean where a condition belongs",
            "relations.toml:14:12: `Like` cannot be the name of a relation",
            "relations.toml:18:10: `follow`: a string where a table belongs",
            "relations.toml:21:21: `limit_per_subject` is not a number that a limit can be",
            "relations.toml:22:10: `one_of` needs a list of 1 to 32 kinds",
            "relations.toml:23:8: `meta`: a string where a table belongs",
            "relations.toml:24:1: unknown key `colour`\n  hint: a relation has read",
        ],
    );
}

#[test]
fn the_documented_relations_work_and_add_to_the_built_in_ones() {
    let text = r#"
[relations.like]
requires_object = true
[relations.bookmark]
read = "own"
requires_object = true
meta = { memo = "string(500)", notification_enabled = "bool" }
[relations.favorite]
read = "own"
limit_per_subject = 1
[relations.reaction]
one_of = ["like", "love", "wow", "sad"]
when.relate = "object.status == 'published'"
"#;
    let settings = load(&with_file(&file("documented", text)), &[]).unwrap();
    let catalog = settings.catalog();
    let relation = |name| catalog.relation(&Name::new(name).unwrap()).unwrap().clone();
    assert_eq!(relation("like").read, ReadPolicy::Public, "what is not written stays as it was");
    assert!(relation("like").requires_object && relation("bookmark").requires_object);
    assert_eq!(relation("bookmark").meta.as_ref().unwrap().0.len(), 2);
    assert_eq!(relation("favorite").limit_per_subject, Some(1));
    assert_eq!(relation("reaction").one_of.len(), 4);
    assert_eq!(relation("reaction").read, ReadPolicy::Own);
    assert!(relation("reaction").when.relate.is_some());
    let shown = render_show(&settings);
    assert!(shown.contains("documented.toml:10:1"), "{shown}");
    assert!(shown.contains("[relations.like]\nread = \"public\""), "{shown}");
}
