//! Elements of HTML and SVG.
//!
//! Text and values of attributes are escaped where they enter, so that nothing in evidence becomes
//! markup. Every element is closed, so that a page is well-formed XML too.

use std::fmt::{Display, Write};

use crate::report::plain;

/// Elements without content, which HTML or SVG closes in its start tag.
const EMPTY: [&str; 8] = [
    "br", "circle", "col", "line", "meta", "path", "polyline", "rect",
];

/// An element with its attributes and content.
#[derive(Clone, Debug)]
pub struct Element {
    name: &'static str,
    attributes: String,
    content: String,
}

/// Makes an element without attributes and content.
pub fn el(name: &'static str) -> Element {
    Element {
        name,
        attributes: String::new(),
        content: String::new(),
    }
}

impl Element {
    /// Adds an attribute.
    pub fn with(mut self, attribute: &'static str, value: impl Display) -> Self {
        self.attributes.push(' ');
        self.attributes.push_str(attribute);
        self.attributes.push_str("=\"");
        escape(&mut self.attributes, &value.to_string());
        self.attributes.push('"');
        self
    }

    /// Adds the attribute `class`.
    pub fn class(self, class: impl Display) -> Self {
        self.with("class", class)
    }

    /// Adds text.
    pub fn text(mut self, text: impl Display) -> Self {
        escape(&mut self.content, &text.to_string());
        self
    }

    /// Adds an element.
    pub fn child(mut self, child: Element) -> Self {
        child.write(&mut self.content);
        self
    }

    /// Adds elements.
    pub fn children(self, children: impl IntoIterator<Item = Element>) -> Self {
        children.into_iter().fold(self, Element::child)
    }

    /// Adds a title, which a pointer on the element shows.
    pub fn tip(self, text: impl Display) -> Self {
        self.child(el("title").text(text))
    }

    /// Adds a style sheet or script of ours as it stands.
    pub fn verbatim(mut self, source: &'static str) -> Self {
        self.content.push_str(source);
        self
    }

    /// Appends its markup.
    pub fn write(&self, out: &mut String) {
        let Self {
            name,
            attributes,
            content,
        } = self;
        let written = if content.is_empty() && EMPTY.contains(name) {
            write!(out, "<{name}{attributes}/>")
        } else {
            write!(out, "<{name}{attributes}>{content}</{name}>")
        };
        written.expect("a String takes everything");
    }
}

/// Appends `text` in plain characters that are allowed in XML, the special ones as references.
fn escape(out: &mut String, text: &str) {
    for c in plain::lines(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_are_escaped() {
        let mut out = String::new();
        el("p")
            .with("title", "\"><script>alert('1')</script>")
            .text("</p>&\u{0}\u{ffff}")
            .child(el("br"))
            .child(el("b"))
            .write(&mut out);
        assert_eq!(
            out,
            "<p title=\"&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;\">\
             &lt;/p&gt;&amp;\u{fffd}\u{fffd}<br/><b></b></p>"
        );
    }
}
