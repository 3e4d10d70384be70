//! Names, which are unique over a whole configuration.

use std::collections::HashMap;

use crate::reader::Reader;

/// Names so far, with the paths of what has them.
#[derive(Debug, Default)]
pub struct Names(HashMap<String, String>);

impl Names {
    /// The name of an object; an error if it has none, or another has it too.
    pub fn take<'a>(&mut self, object: &Reader<'a>) -> &'a str {
        let Some(name) = object.required("name") else {
            return "";
        };
        let path = object.path().to_owned();
        if let Some(other) = self.0.insert(name.to_owned(), path) {
            object.error(
                "name",
                format!("is \"{name}\", as {other} is called: names are unique over all objects"),
            );
        }
        name
    }
}
