//! A real nginx in front, which asks with `auth_request`.

use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::*;
use crate::world::*;

/// A running nginx. It dies with the value.
struct Nginx {
    child: Child,
    base: String,
    _folder: TempDir,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Nginx {
    async fn start(tally: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let (home, port) = (folder.path().display().to_string(), free_port());
        let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .into_iter()
            .map(|name| format!("  {name}_temp_path {home}/{name};\n"))
            .collect();
        let config = format!(
            r#"daemon off; master_process off; pid {home}/pid; error_log {home}/error.log;
events {{}}
http {{
  access_log off;
{paths}
  server {{
    listen 127.0.0.1:{port};
    location /wait/ {{
      proxy_pass http://{tally};
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }}
    location = /check {{
      internal;
      proxy_pass http://{tally}/v1/rooms/sale/check;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header X-Original-URI $request_uri;
    }}
    location / {{
      auth_request /check;
      auth_request_set $renewed $upstream_http_set_cookie;
      auth_request_set $seq $upstream_http_tally_seq;
      add_header Set-Cookie $renewed;
      error_page 401 = @wait;
      default_type text/plain;
      try_files /none @shop;
    }}
    location @shop {{ return 200 "shop for $seq"; }}
    location @wait {{ return 302 /wait/sale?return=$request_uri; }}
  }}
}}
"#
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new(nginx());
        command.arg("-c").arg(&file).arg("-p").arg(folder.path()).arg("-e").arg(folder.path().join("error.log"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let nginx = Self { child, base: format!("http://127.0.0.1:{port}"), _folder: folder };
        let client = Client::new(&nginx.base, None);
        until("nginx answers", async || client.get("/wait/none").try_send().await.ok()).await;
        nginx
    }
}

/// Debian keeps it where only root looks.
fn nginx() -> &'static str {
    ["/usr/sbin/nginx", "/usr/local/sbin/nginx"]
        .into_iter()
        .find(|file| std::path::Path::new(file).is_file())
        .unwrap_or("nginx")
}

#[tokio::test]
async fn whoever_is_not_inside_waits_and_then_shops() {
    let server = Server::start("[http]\ntrusted_proxies = \"127.0.0.1\"\n").await;
    let client = server.client();
    room(&client, "sale", held()).await;
    let proxy = Nginx::start(server.address()).await;
    let shop = Client::new(&proxy.base, None);
    let refused = shop.get("/cart").send().await;
    let place = refused.header("location").unwrap_or_else(|| panic!("{refused:?}")).replace(&proxy.base, "");
    assert_eq!((refused.status, place.as_str()), (302, "/wait/sale?return=/cart"));
    let waits = shop.get(&place).send().await;
    assert_eq!(waits.status, 200, "{}", waits.text());
    let ticket = format!("tally_ticket_sale={}", cookie(&waits, "tally_ticket_sale").unwrap().0);
    client.post("/v1/rooms/sale/admit").json(&json!({"count": 1})).ok().await;
    let entered = shop.get(&place).header("cookie", &ticket).send().await;
    assert_eq!(entered.status, 303, "{}", entered.text());
    assert!(entered.header("location").unwrap().ends_with("/cart"), "{entered:?}");
    let admission = format!("tally_sale={}", cookie(&entered, "tally_sale").unwrap().0);
    let inside = shop.get("/cart").header("cookie", &admission).send().await;
    assert_eq!((inside.status, inside.text().as_str()), (200, "shop for 1"));
}
