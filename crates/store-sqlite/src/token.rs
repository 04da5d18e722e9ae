//! What a token says here: the row of its task, and a number that nobody can guess, made for every claim.
//!
//! The number is one for all tasks of a call, so that one statement claims them all; the row tells their tokens apart, and leads
//! whoever presents one straight to the task.

use poolwright_core::{Chance, Token};

/// The two halves of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The row of the task.
    pub(crate) seq: i64,
    /// The column `token`.
    pub(crate) secret: i64,
}

/// A secret for a call that hands out tasks.
pub(crate) fn secret(chance: &Chance) -> i64 {
    chance.next().cast_signed()
}

/// The token of the task in this row.
pub(crate) fn token(Parts { seq, secret }: Parts) -> Token {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&secret.to_be_bytes());
    // Mixed, so that both halves look like what they are: nothing that a reader should build upon.
    bytes[8..].copy_from_slice(&(secret ^ seq).to_be_bytes());
    Token::from_bytes(bytes)
}

/// What a presented token says. Whether it is true is for the row to say.
pub(crate) fn parts(token: Token) -> Parts {
    let bytes = token.to_bytes();
    let half = |at: usize| i64::from_be_bytes(std::array::from_fn(|nth| bytes[at + nth]));
    let secret = half(0);
    Parts { seq: half(8) ^ secret, secret }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_gives_back_its_parts() {
        for secret in [0, -1, i64::MIN, secret(&Chance::seeded(3))] {
            for seq in [1, 2, i64::MAX] {
                assert_eq!(parts(token(Parts { seq, secret })), Parts { seq, secret });
            }
        }
    }

    #[test]
    fn tokens_of_one_call_and_of_one_row_differ() {
        let at = |seq, secret| token(Parts { seq, secret });
        assert!(at(1, 7) != at(2, 7) && at(1, 7) != at(1, 8));
    }
}
