//! Properties of every field of every table: a field is set and read back alone, and no other bit
//! changes.

use super::field::{Accessor, get};
use super::*;

/// Pseudo-random octets (xorshift64*), the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn octets<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| (self.next() >> 56) as u8)
    }
}

fn bit(octets: &[u8], index: u32) -> u64 {
    get(octets, index, 1)
}

fn check<T, const N: usize>(
    accessors: &[Accessor<T>],
    from: fn([u8; N]) -> T,
    octets: fn(&T) -> &[u8; N],
) {
    let mut owner = vec![None; 8 * N];
    for field in accessors {
        for at in field.offset..field.offset + field.width {
            let other = owner[at as usize].replace(field.name);
            assert_eq!(other, None, "bit {at} belongs to {} too", field.name);
        }
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..60 {
        let before: [u8; N] = match round {
            0 => [0; N],
            1 => [0xff; N],
            _ => random.octets(),
        };
        for field in accessors {
            let most = u64::MAX >> (64 - field.width);
            for value in [
                0,
                most,
                most.wrapping_add(1),
                random.next(),
                random.next() & most,
            ] {
                let mut attribute = from(before);
                let value = (field.typed)(value);
                let result = (field.set)(&mut attribute, value);
                let after = octets(&attribute);
                if value > most {
                    let error = result.expect_err(field.name);
                    assert_eq!(
                        (error.field, error.width, error.value),
                        (field.name, field.width, value)
                    );
                    assert_eq!(
                        *after, before,
                        "{}: refused, and written all the same",
                        field.name
                    );
                    continue;
                }
                result.expect(field.name);
                assert_eq!((field.get)(&attribute), value, "{}", field.name);
                for at in 0..8 * N as u32 {
                    let own = (field.offset..field.offset + field.width).contains(&at);
                    let wanted = if own {
                        value >> (field.offset + field.width - 1 - at) & 1
                    } else {
                        bit(&before, at)
                    };
                    assert_eq!(
                        bit(after, at),
                        wanted,
                        "{} set to {value:#x}: bit {at}",
                        field.name
                    );
                }
            }
        }
    }
}

macro_rules! tables {
    ($($test:ident: $type:ident;)*) => { $(
        #[test]
        fn $test() {
            check(&$type::accessors(), $type::from_data, $type::data);
        }
    )* };
}

tables! {
    node_info: NodeInfo;
    switch_info: SwitchInfo;
    port_info: PortInfo;
    notice: Notice;
}

#[test]
fn bad_m_key() {
    fn from(details: [u8; Notice::DETAILS]) -> BadMKey {
        let mut notice = Notice::default();
        notice.set_is_generic(true).unwrap();
        notice
            .set_trap_number_or_device_id(BadMKey::TRAP_NUMBER)
            .unwrap();
        *notice.data_details_mut() = details;
        notice.bad_m_key().unwrap()
    }
    check(&BadMKey::accessors(), from, BadMKey::octets);
}

/// A field of every width at every offset, compared with the definition bit by bit.
#[test]
fn get_and_set_of_any_width_at_any_offset() {
    let mut random = Random(1);
    for width in 1..=64 {
        for offset in 0..=8 * 16 - width {
            let before: [u8; 16] = random.octets();
            let read = (offset..offset + width).fold(0, |value, at| {
                value << 1 | u64::from(before[at as usize / 8] >> (7 - at % 8) & 1)
            });
            assert_eq!(
                get(&before, offset, width),
                read,
                "{width} bits at {offset}"
            );
            let value = random.next() >> (64 - width);
            let mut after = before;
            super::field::set(&mut after, offset, width, value);
            for at in 0..128 {
                let bit =
                    |octets: &[u8; 16]| u64::from(octets[at as usize / 8] >> (7 - at % 8) & 1);
                let own = (offset..offset + width).contains(&at);
                let wanted = if own {
                    value >> (offset + width - 1 - at) & 1
                } else {
                    bit(&before)
                };
                assert_eq!(bit(&after), wanted, "{width} bits at {offset}: bit {at}");
            }
        }
    }
}
