//! The head of a request (RFC 9112, 3), which whoever reaches the listener writes.
//!
//! The fuzz target `metrics` has this file by itself: it uses nothing of the crate.

/// Most octets of a head.
pub const LONGEST: usize = 8 << 10;

/// What is done with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Sends the page.
    Get,
    /// Sends the head of the answer alone.
    Head,
}

/// A page that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// For a browser.
    Landing,
    /// For Prometheus.
    Metrics,
}

/// The page that is asked for, or the status that answers the request.
pub fn request(head: &[u8]) -> Result<(Method, Page), &'static str> {
    const BAD: &str = "400 Bad Request";
    if head.len() > LONGEST {
        return Err("431 Request Header Fields Too Large");
    }
    let end = head
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .ok_or(BAD)?;
    let text = std::str::from_utf8(&head[..end]).map_err(|_| BAD)?;
    let mut words = text.lines().next().ok_or(BAD)?.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(BAD);
    };
    if !version.starts_with("HTTP/1.") {
        return Err("505 HTTP Version Not Supported");
    }
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        _ => return Err("405 Method Not Allowed"),
    };
    match path(target) {
        "/metrics" => Ok((method, Page::Metrics)),
        "/" => Ok((method, Page::Landing)),
        _ => Err("404 Not Found"),
    }
}

/// The path of a target, which may be a whole URI: every server has to take one, whatever its
/// authority (RFC 9112, 3.2.2).
fn path(target: &str) -> &str {
    let target = target.split('?').next().unwrap_or_default();
    let scheme = target
        .get(..7)
        .filter(|start| start.eq_ignore_ascii_case("http://"));
    match scheme {
        Some(_) => target[7..].find('/').map_or("/", |at| &target[7 + at..]),
        None => target,
    }
}
