//! Each counter, by frames of others' making.
