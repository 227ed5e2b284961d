//! The contract as the server tells it.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

mod support;

use support::*;

/// Every `METHOD path` of the contract.
async fn calls(client: &Client) -> Vec<String> {
    let contract = client.get("/openapi.json").ok().await;
    let mut calls = Vec::new();
    for (path, item) in contract["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            calls.push(format!("{} {path}", method.to_uppercase()));
        }
    }
    calls.sort();
    calls
}

#[tokio::test]
async fn the_calls_of_the_contract() {
    let server = Server::start("").await;
    insta::assert_snapshot!(calls(&server.client()).await.join("\n"));
}

#[tokio::test]
async fn the_contract_is_openapi_3_1_and_describes_every_call() {
    let server = Server::start("").await;
    let answer = server.client_as(None).get("/openapi.json").send().await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let contract = answer.json();
    assert!(contract["openapi"].as_str().unwrap().starts_with("3.1"), "{}", contract["openapi"]);
    assert_eq!(contract["info"]["title"], "Tally");
    assert_eq!(contract["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    let mut ids = std::collections::HashSet::new();
    for (path, item) in contract["paths"].as_object().unwrap() {
        for (method, call) in item.as_object().unwrap() {
            let what = format!("{method} {path}");
            assert!(call["summary"].is_string(), "{what} has no summary");
            assert!(ids.insert(call["operationId"].as_str().unwrap().to_owned()), "{what}: its id is taken");
            let responses = call["responses"].as_object().unwrap();
            assert!(responses.keys().any(|status| status.starts_with('2')), "{what}");
            let free = ["/healthz", "/readyz", "/openapi.json", "/.well-known/jwks.json"].contains(&path.as_str());
            assert!(free || responses.contains_key("4XX"), "{what} says nothing of its refusals");
            for name in path.split('{').skip(1).map(|rest| rest.split('}').next().unwrap()) {
                let parameters = call["parameters"].as_array().unwrap();
                assert!(parameters.iter().any(|p| p["name"] == name && p["in"] == "path"), "{what}: {name}");
            }
        }
    }
}

#[tokio::test]
async fn every_call_of_the_contract_is_there() {
    let server = Server::start("").await;
    let client = server.client();
    for call in calls(&client).await {
        let (method, path) = call.split_once(' ').unwrap();
        let path = path
            .replace("{relation}", "like")
            .replace("{object}", "post:1")
            .replace("{subject}", "alice")
            .replace("{counter}", "views")
            .replace("{unique}", "dau")
            .replace("{sheet}", "daily")
            .replace("{day}", "today")
            .replace("{board}", "points")
            .replace("{member}", "alice")
            .replace("{limit}", "posting")
            .replace("{key}", "post:1")
            .replace("{room}", "sale")
            .replace("{ticket}", "1-x")
            .replace("{job}", "job_0000000000000000")
            .replace("{id}", "nokey");
        assert!(!path.contains('{'), "{path}");
        let response = client.request(method.parse().unwrap(), &path).open().await;
        let status = response.status();
        assert!(status != 405 && !status.is_server_error(), "{call}: {status}");
        if status == 404 {
            let problem: Value = response.json().await.unwrap();
            assert!(!problem["detail"].as_str().unwrap().contains("nothing at this path"), "{call}");
        }
    }
}

#[tokio::test]
async fn every_reference_of_the_contract_leads_somewhere() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let server = Server::start("").await;
    let contract = server.client().get("/openapi.json").ok().await;
    let mut found = Vec::new();
    references(&contract, &mut found);
    assert!(found.len() > 10);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} leads outside"));
        assert!(contract.pointer(pointer).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn the_readable_page_asks_nobody_else_for_anything() {
    let server = Server::start("").await;
    let nobody = server.client_as(None);
    let page = nobody.get("/docs").send().await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap();
    for rule in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let text = page.text();
    for outside in ["http://", "https://", "//cdn", "onclick=", "onload=", " style=", "<style"] {
        assert!(!text.contains(outside), "{outside}");
    }
    let home = nobody.get("/").send().await;
    assert!(home.status == 200 || home.header("location") == Some("/docs"), "{}", home.status);
    for (path, kind) in [("/docs/docs.js", "text/javascript"), ("/docs/docs.css", "text/css")] {
        let file = nobody.get(path).send().await;
        assert_eq!(file.status, 200, "{path}");
        assert!(file.header("content-type").unwrap().starts_with(kind), "{path}");
    }
}
