//! Keys of testbeds and plans: the tables that read them, and their documentation.

/// A key as its user finds it in the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Path, such as `ports.line_rate`.
    pub path: &'static str,
    /// The shape of its value.
    pub value: &'static str,
    /// Its default: in TOML where it is one value for all, else in words, or empty.
    pub default: &'static str,
    /// Its meaning, and when it may stand.
    pub meaning: &'static str,
}

impl Key {
    /// True if the default is one value for all, and not a rule in words.
    pub fn has_plain_default(&self) -> bool {
        self.default
            .starts_with(|first: char| first.is_ascii_digit() || "\"[".contains(first))
    }
}

/// A table of a file, with its keys in their order.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name in the file; empty for the keys above all tables.
    pub name: &'static str,
    /// Its subject, in a sentence.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// Defines a table and its documentation in one place:
/// `"NAME", "PREFIX" { KEY = "VALUE", "DEFAULT"; }`. PREFIX stands before each key in its path,
/// VALUE is the shape of a value, and comments are the meanings. With `struct` in front, it also
/// defines the type that reads the table, whose constant `TABLE` is the documentation.
#[macro_export]
macro_rules! key_table {
    (
        $(#[doc = $about:literal])+
        #[derive($($derived:ident),+)]
        $vis:vis struct $Table:ident: $name:literal, $prefix:literal {
            $(
                $(#[doc = $meaning:literal])+
                $(#[serde($serde:ident)])?
                $key_vis:vis $key:ident: $type:ty = $value:literal, $default:literal;
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive($($derived),+)]
        #[serde(deny_unknown_fields)]
        $vis struct $Table {
            $($(#[doc = $meaning])+ $(#[serde($serde)])? $key_vis $key: $type,)+
        }

        impl $Table {
            /// Its documentation.
            $vis const TABLE: $crate::keys::Table = $crate::key_table! {
                $(#[doc = $about])+
                $name, $prefix {
                    $($(#[doc = $meaning])+ $key = $value, $default;)+
                }
            };
        }
    };
    (
        $(#[doc = $about:literal])+
        $name:literal, $prefix:literal {
            $(
                $(#[doc = $meaning:literal])+
                $key:ident = $value:literal, $default:literal;
            )+
        }
    ) => {
        $crate::keys::Table {
            name: $name,
            about: concat!($($about),+).trim_ascii(),
            keys: &[$($crate::keys::Key {
                path: concat!($prefix, stringify!($key)),
                value: $value,
                default: $default,
                meaning: concat!($($meaning),+).trim_ascii(),
            }),+],
        }
    };
}
pub use key_table as table;
