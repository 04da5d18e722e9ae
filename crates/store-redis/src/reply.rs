//! Reading what scripts answer.
//!
//! Invariant: an answer of another shape than the script promises is an error that says what was expected; nothing panics on
//! what a server says.

use bytes::Bytes;
use poolwright_broker::Error;
use poolwright_core::Timestamp;
use redis::{ServerError, Value};

/// The parts of an answer, in order.
pub(crate) struct Parts {
    script: &'static str,
    /// The store's time when it answered, once that was read.
    pub(crate) at: Timestamp,
    parts: std::vec::IntoIter<Value>,
}

impl Parts {
    /// The parts of this answer.
    pub(crate) fn of(script: &'static str, value: Value) -> Result<Self, Error> {
        match value {
            Value::Array(parts) => Ok(Self { script, at: Timestamp::EPOCH, parts: parts.into_iter() }),
            Value::Nil => Ok(Self { script, at: Timestamp::EPOCH, parts: Vec::new().into_iter() }),
            other => Err(odd(script, "a list", &other)),
        }
    }

    fn next(&mut self, wanted: &str) -> Result<Value, Error> {
        self.parts.next().ok_or_else(|| odd(self.script, wanted, &Value::Nil))
    }

    /// Bytes.
    pub(crate) fn bytes(&mut self) -> Result<Bytes, Error> {
        match self.next("bytes")? {
            Value::BulkString(bytes) => Ok(bytes.into()),
            Value::SimpleString(text) => Ok(text.into()),
            Value::Int(number) => Ok(number.to_string().into()),
            other => Err(odd(self.script, "bytes", &other)),
        }
    }

    /// Text.
    pub(crate) fn text(&mut self) -> Result<String, Error> {
        let bytes = self.bytes()?;
        // What is no text came from elsewhere; it is shown as well as it can be.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A whole number.
    pub(crate) fn number(&mut self) -> Result<i64, Error> {
        match self.next("a number")? {
            Value::Int(number) => Ok(number),
            Value::BulkString(bytes) => {
                let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok());
                number.ok_or_else(|| odd(self.script, "a number", &Value::BulkString(bytes)))
            }
            other => Err(odd(self.script, "a number", &other)),
        }
    }

    /// A count.
    pub(crate) fn count(&mut self) -> Result<u64, Error> {
        Ok(u64::try_from(self.number()?).unwrap_or(0))
    }

    /// A place in a list.
    pub(crate) fn place(&mut self) -> Result<usize, Error> {
        Ok(usize::try_from(self.number()?).unwrap_or(usize::MAX))
    }

    /// A time in microseconds.
    pub(crate) fn time(&mut self) -> Result<Timestamp, Error> {
        Ok(Timestamp::from_micros(self.number()?))
    }

    /// Parts of their own; none where a number stands in their place.
    pub(crate) fn list_or_number(&mut self) -> Result<Option<Parts>, Error> {
        match self.parts.as_slice().first() {
            Some(Value::Int(_)) => self.number().map(|_| None),
            _ => self.list().map(Some),
        }
    }

    /// Parts of their own, or bytes in their place.
    pub(crate) fn list_or_bytes(&mut self) -> Result<Result<Parts, Bytes>, Error> {
        match self.parts.as_slice().first() {
            Some(Value::Array(_)) => self.list().map(Ok),
            _ => self.bytes().map(Err),
        }
    }

    /// Parts of their own.
    pub(crate) fn list(&mut self) -> Result<Parts, Error> {
        let value = self.next("a list")?;
        Parts::of(self.script, value)
    }

    /// The answer of another script, with the time at its front, or the error that it ended with.
    pub(crate) fn timed_or_error(&mut self) -> Result<Result<Parts, ServerError>, Error> {
        match self.next("an answer")? {
            Value::ServerError(error) => Ok(Err(error)),
            answer => {
                let mut parts = Parts::of(self.script, answer)?;
                parts.at = parts.time()?;
                Ok(Ok(parts))
            }
        }
    }

    /// What is left, each as parts of its own.
    pub(crate) fn lists(&mut self) -> Result<Vec<Parts>, Error> {
        let parts = std::mem::take(&mut self.parts);
        parts.map(|value| Parts::of(self.script, value)).collect()
    }

    /// How many parts are left.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }
}

fn odd(script: &str, wanted: &str, got: &Value) -> Error {
    Error::Corrupt { what: format!("script {script} answered {got:?} where {wanted} was expected") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_as_integers_or_as_text() {
        let value = Value::Array(vec![Value::Int(7), Value::BulkString(b"8".to_vec()), Value::Nil]);
        let mut parts = Parts::of("test", value).unwrap();
        assert_eq!((parts.number(), parts.number()), (Ok(7), Ok(8)));
        assert!(matches!(parts.number(), Err(Error::Corrupt { .. })));
        assert!(parts.bytes().is_err(), "there is nothing left");
    }
}
