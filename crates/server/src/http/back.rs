//! Where somebody is sent back to: never to a place that only the address in their hands has named.

/// Longest address.
const BYTES_MAX: usize = 2_048;

/// The address, if it is on the host that they came to or on one of these.
pub fn allowed<'a>(target: &'a str, own: Option<&str>, hosts: &[String]) -> Option<&'a str> {
    // Browsers leave out control characters and take `\` for `/`, so neither is let through.
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\\\"<>".contains(&byte);
    if target.len() > BYTES_MAX || !target.bytes().all(is_plain) {
        return None;
    }
    if target.starts_with('/') {
        return (!target.starts_with("//")).then_some(target);
    }
    let rest = target.strip_prefix("https://").or_else(|| target.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty())?;
    let is_own = own.is_some_and(|own| own.eq_ignore_ascii_case(authority));
    (is_own || hosts.iter().any(|host| names(host, authority))).then_some(target)
}

/// Whether a host that is allowed is the one of an address; without a port it is so on every port.
fn names(host: &str, authority: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let without_port = authority.rsplit_once(':').filter(|(_, port)| is_port(port)).map(|(host, _)| host);
    host.eq_ignore_ascii_case(authority) || without_port.is_some_and(|own| host.eq_ignore_ascii_case(own))
}

/// Percent-encodes everything but what stands for itself anywhere.
pub fn percent_encode(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_where_a_stranger_wants_them() {
        let hosts = ["shop.example".to_owned(), "other.example:8443".to_owned()];
        let go = |target: &str| allowed(target, Some("wait.example:81"), &hosts).is_some();
        for fine in [
            "/",
            "/cart?x=1#a",
            "https://shop.example",
            "https://SHOP.example/cart",
            "http://shop.example:8080/",
            "https://other.example:8443/",
            "https://wait.example:81/x",
        ] {
            assert!(go(fine), "{fine}");
        }
        for wrong in [
            "",
            "cart",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/\t/evil.example",
            "https:evil.example",
            "https:///evil.example",
            "https://evil.example",
            "https://shop.example.evil.example",
            "https://shop.example@evil.example",
            "https://shop.example:1@evil.example/",
            "https://evil.example/shop.example",
            "https://evil.example?shop.example",
            "https://other.example/",
            "https://wait.example/",
            "javascript:alert(1)",
            "data:text/html,x",
            " https://shop.example",
        ] {
            assert!(!go(wrong), "{wrong}");
        }
    }
}
