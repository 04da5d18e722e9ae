//! Aligned columns, and aligned pairs of a name and a value.

use crate::print::{Paint, Tone};
use crate::text;

/// Between two columns.
const GAP: &str = "  ";

/// Rows under headings.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

#[derive(Debug)]
struct Column {
    title: &'static str,
    is_number: bool,
}

/// One value of a table.
#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Table {
    /// A table with these headings. One that begins with `#` heads numbers, which stand at the right.
    pub(crate) fn new(titles: &[&'static str]) -> Self {
        let column = |title: &&'static str| match title.strip_prefix('#') {
            Some(title) => Column { title, is_number: true },
            None => Column { title, is_number: false },
        };
        Self { columns: titles.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row, with one value for each heading.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.push(cells.into());
    }

    /// Adds a row, with one value for each heading.
    pub(crate) fn push(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.columns.len(), "a row has one value for each heading");
        self.rows.push(cells);
    }

    /// The table as text, nothing when it has no rows.
    pub(crate) fn render(&self, paint: Paint) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let widths: Vec<usize> =
            self.columns.iter().enumerate().map(|(at, column)| self.width(at, column)).collect();
        let heads: Vec<Cell> =
            self.columns.iter().map(|column| Cell::from(column.title).tone(Tone::Head)).collect();
        let mut out = String::new();
        for row in std::iter::once(&heads).chain(&self.rows) {
            self.line(row, &widths, paint, &mut out);
        }
        out
    }

    fn width(&self, at: usize, column: &Column) -> usize {
        let cells = self.rows.iter().map(|row| text::width(&row[at].text));
        cells.chain([text::width(column.title)]).max().unwrap_or(0)
    }

    fn line(&self, row: &[Cell], widths: &[usize], paint: Paint, out: &mut String) {
        let mut owed = String::new();
        for ((cell, column), width) in row.iter().zip(&self.columns).zip(widths) {
            let padding = " ".repeat(width - text::width(&cell.text));
            let (before, after) =
                if column.is_number { (padding, String::new()) } else { (String::new(), padding) };
            owed.push_str(&before);
            if !cell.text.is_empty() {
                // Blanks are owed until something follows them, so that no line ends with one.
                out.push_str(&std::mem::take(&mut owed));
                out.push_str(&paint.on(cell.tone, &cell.text));
            }
            owed.push_str(&after);
            owed.push_str(GAP);
        }
        out.push('\n');
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text::one_line(text.as_ref()), tone: Tone::Plain }
    }
}

impl Cell {
    /// Anything that can be printed.
    pub(crate) fn of(value: impl ToString) -> Self {
        Self::from(value.to_string())
    }

    /// A count; zeros step back, so that the others stand out.
    pub(crate) fn count(count: u64) -> Self {
        Self::of(count).tone(if count == 0 { Tone::Faint } else { Tone::Plain })
    }

    /// A long text, cut to so many columns.
    pub(crate) fn cut(text: &str, columns_max: usize) -> Self {
        Self { text: text::shorten(&text::one_line(text), columns_max), tone: Tone::Plain }
    }

    /// What may be absent.
    pub(crate) fn maybe(text: Option<impl ToString>) -> Self {
        text.map_or_else(|| Self::from("-").tone(Tone::Faint), Self::of)
    }

    /// The same in another tone.
    pub(crate) fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

/// Names and values, each on a line of its own; the further lines of a value stand under its first.
#[derive(Debug, Default)]
pub(crate) struct Pairs(Vec<(String, String)>);

impl Pairs {
    pub(crate) fn add(&mut self, name: &str, value: impl ToString) {
        self.0.push((text::one_line(name), value.to_string()));
    }

    pub(crate) fn maybe(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    pub(crate) fn render(&self, paint: Paint) -> String {
        let width = self.0.iter().map(|(name, _)| text::width(name)).max().unwrap_or(0);
        let mut out = String::new();
        for (name, value) in &self.0 {
            let padding = " ".repeat(width - text::width(name));
            let mut lines = text::lines(value).into_iter();
            let first = lines.next().unwrap_or_default();
            out.push_str(format!("{}{padding}{GAP}{first}", paint.on(Tone::Faint, name)).trim_end());
            out.push('\n');
            for line in lines {
                out.push_str(format!("{}{GAP}{line}", " ".repeat(width)).trim_end());
                out.push('\n');
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint(false);

    #[test]
    fn columns_are_aligned_by_what_is_seen() {
        let mut table = Table::new(&["NAME", "#TASKS", "STATE"]);
        table.row(["日本語".into(), Cell::count(7), "".into()]);
        table.row(["plain name".into(), Cell::count(12_345), "paused".into()]);
        assert_eq!(
            table.render(PLAIN),
            "NAME        TASKS  STATE\n日本語          7\nplain name  12345  paused\n"
        );
    }

    #[test]
    fn colours_change_no_alignment() {
        let mut table = Table::new(&["A", "B"]);
        table.row([Cell::from("x").tone(Tone::Alarm), "y".into()]);
        let painted = table.render(Paint(true));
        assert!(painted.contains("\u{1b}[31mx\u{1b}[0m  y\n"), "{painted:?}");
        let bare = painted.replace("\u{1b}[31m", "").replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        assert_eq!(bare, table.render(PLAIN));
    }

    #[test]
    fn a_table_without_rows_is_nothing() {
        assert_eq!(Table::new(&["A"]).render(PLAIN), "");
    }

    #[test]
    fn the_lines_of_a_value_stand_under_each_other() {
        let mut pairs = Pairs::default();
        pairs.add("id", "a");
        pairs.add("last error", "first\n  second\u{1b}\n\nfourth");
        pairs.maybe("worker", None::<&str>);
        assert_eq!(
            pairs.render(PLAIN),
            "id          a\nlast error  first\n              second\u{fffd}\n\n            fourth\n"
        );
    }
}
