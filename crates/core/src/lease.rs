//! The proof that an attempt owns its task.

use std::fmt;

use crate::Chance;

/// A claim's proof of ownership. Every claim makes a new one; every later write presents it.
///
/// A store compares it and nothing else: a token of an earlier claim is refused, also when the task went
/// round and is running again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(u128);

impl Token {
    /// A fresh one.
    #[must_use]
    pub fn fresh(chance: &Chance) -> Self {
        Self(u128::from_be_bytes(chance.bytes()))
    }

    /// From its 16 stored bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// The 16 bytes to store.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

/// 32 lower-case hexadecimal digits.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({self})")
    }
}

impl serde::Serialize for Token {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Token {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl std::str::FromStr for Token {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_text_and_bytes() {
        let token = Token::fresh(&Chance::seeded(3));
        assert_eq!(token.to_string().parse::<Token>().unwrap(), token);
        assert_eq!(Token::from_bytes(token.to_bytes()), token);
        assert_eq!(token.to_string().len(), 32);
    }
}
