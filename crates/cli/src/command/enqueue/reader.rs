//! Reads the lines of `enqueue --from`, on a thread of their own: a pipe may give one now and the next in an hour.

use std::io::{self, BufRead, Read as _};
use std::thread;

use tokio::sync::mpsc::Sender;

/// A line that is not blank.
#[derive(Debug, PartialEq)]
pub(crate) struct Numbered {
    /// From 1.
    pub(crate) number: u64,
    /// Its text, or why it cannot be read.
    pub(crate) text: Result<String, String>,
}

/// Reads in the background until the input ends, fails, or nobody takes lines any more. While the channel is full, it
/// waits.
///
/// Nobody joins the thread: it may wait for a pipe that never speaks again, and then ends with the process. The end of
/// the channel says that it has read everything.
///
/// # Errors
/// When the system gives no thread.
pub(crate) fn spawn(
    input: impl BufRead + Send + 'static,
    line_bytes_max: usize,
    lines: Sender<Numbered>,
) -> io::Result<()> {
    let read = move || each_line(input, line_bytes_max, |line| lines.blocking_send(line).is_ok());
    thread::Builder::new().name("poolwright-lines".to_owned()).spawn(read).map(drop)
}

/// Gives every line that is not blank to `take`, until it refuses one.
fn each_line(mut input: impl BufRead, line_bytes_max: usize, mut take: impl FnMut(Numbered) -> bool) {
    for number in 1.. {
        let text = match next_line(&mut input, line_bytes_max) {
            Ok(Some(bytes)) => decode(number, bytes, line_bytes_max),
            Ok(None) => return,
            Err(why) => {
                take(Numbered { number, text: Err(format!("the input cannot be read any further: {why}")) });
                return;
            }
        };
        let is_blank = text.as_ref().is_ok_and(|text| text.trim().is_empty());
        if !is_blank && !take(Numbered { number, text }) {
            return;
        }
    }
}

/// The bytes of a line; of one that is too long, no more than one byte too many.
fn next_line(input: &mut impl BufRead, line_bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let most = line_bytes_max as u64 + 1;
    if input.by_ref().take(most).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    } else if bytes.len() > line_bytes_max {
        input.skip_until(b'\n')?;
    }
    Ok(Some(bytes))
}

fn decode(number: u64, bytes: Vec<u8>, line_bytes_max: usize) -> Result<String, String> {
    if bytes.len() > line_bytes_max {
        return Err(format!("the line has more than {line_bytes_max} bytes, which no task may have"));
    }
    let text = String::from_utf8(bytes).map_err(|why| format!("the line is no UTF-8: {why}"))?;
    // Some editors put a mark before the first line.
    Ok(if number == 1 { text.trim_start_matches('\u{feff}').to_owned() } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8]) -> Vec<(u64, Result<String, String>)> {
        let mut lines = Vec::new();
        each_line(input, 10, |line| {
            lines.push((line.number, line.text));
            true
        });
        lines
    }

    #[test]
    fn lines_keep_their_numbers_and_blank_ones_are_passed_over() {
        let lines = read("\u{feff}a\r\n\n  \nb\n\nlast".as_bytes());
        assert_eq!(lines, [(1, Ok("a\r".into())), (4, Ok("b".into())), (6, Ok("last".into()))]);
        assert_eq!(read(b""), []);
    }

    #[test]
    fn a_line_that_cannot_be_read_does_not_hide_the_next() {
        let lines = read(b"0123456789\n0123456789a and more\n\xff\nb");
        assert_eq!(lines[0], (1, Ok("0123456789".into())));
        assert_eq!(lines[1], (2, Err("the line has more than 10 bytes, which no task may have".into())));
        assert!(lines[2].1.as_ref().is_err_and(|why| why.starts_with("the line is no UTF-8")));
        assert_eq!(lines[3], (4, Ok("b".into())));
    }

    #[test]
    fn nothing_is_read_once_nobody_takes_lines() {
        let mut taken = 0;
        each_line(&b"a\nb\nc"[..], 10, |_| {
            taken += 1;
            taken < 2
        });
        assert_eq!(taken, 2);
    }

    #[test]
    fn an_input_that_fails_is_told_at_its_line() {
        struct Broken;
        impl io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("unplugged"))
            }
        }
        let mut lines = Vec::new();
        let input = io::BufReader::new((&b"a\n"[..]).chain(Broken));
        each_line(input, 10, |line| {
            lines.push(line);
            true
        });
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[1].number, lines[1].text.is_err()), (2, true));
    }
}
