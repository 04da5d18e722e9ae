//! The colours of a picture: the mean, and the few that cover most of it.

use std::fmt;

use image::RgbaImage;
use serde::{Deserialize, Serialize};

/// Below this a point lets more through than it shows.
const OPAQUE_MIN: u8 = 128;
/// Colours nearer than this (squared distance in RGB) are told as one.
const NEAR_SQUARED: i64 = 52 * 52;
/// Groups that are formed before the largest are chosen.
const GROUPS_MAX: usize = 24;

/// Red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Colour(pub [u8; 3]);

/// `#rrggbb`.
impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

/// A colour and how much of the picture it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The mean of the points that are near it.
    pub colour: Colour,
    /// Hundredths of the points that are not transparent, rounded down.
    pub percent: u8,
}

/// Points that were put together.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    count: u64,
    sums: [u64; 3],
}

impl Group {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        for (sum, more) in self.sums.iter_mut().zip(other.sums) {
            *sum += more;
        }
    }

    fn mean(self) -> Colour {
        Colour(
            self.sums.map(|sum| u8::try_from((sum + self.count / 2) / self.count.max(1)).unwrap_or(u8::MAX)),
        )
    }
}

fn opaque(points: &RgbaImage) -> impl Iterator<Item = Group> {
    let group = |[red, green, blue, _]: [u8; 4]| Group { count: 1, sums: [red, green, blue].map(u64::from) };
    points.pixels().filter(|point| point.0[3] >= OPAQUE_MIN).map(move |point| group(point.0))
}

/// The mean of all points that are not transparent.
pub(super) fn average(points: &RgbaImage) -> Option<Colour> {
    let mut all = Group::default();
    opaque(points).for_each(|point| all.add(point));
    (all.count > 0).then(|| all.mean())
}

/// Counts points in 4,096 cells of the colour cube, then joins near cells, the fullest first. Integers and a fixed
/// order make the answer the same everywhere.
pub(super) fn dominant(points: &RgbaImage, max: usize) -> Vec<Share> {
    let mut cells = vec![Group::default(); 1 << 12];
    for point in opaque(points) {
        let [red, green, blue] = point.sums.map(|sum| usize::try_from(sum >> 4).unwrap_or(15));
        cells[red << 8 | green << 4 | blue].add(point);
    }
    cells.retain(|cell| cell.count > 0);
    // The sort is stable, so cells with as many points stay in the order of the cube.
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.count));
    let total: u64 = cells.iter().map(|cell| cell.count).sum();
    let mut groups: Vec<Group> = Vec::new();
    for cell in cells {
        let near = groups.iter().position(|group| distance(group.mean(), cell.mean()) < NEAR_SQUARED);
        match near {
            Some(at) => groups[at].add(cell),
            None if groups.len() < GROUPS_MAX => groups.push(cell),
            None => {}
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    let percent = |group: &Group| u8::try_from(group.count * 100 / total.max(1)).unwrap_or(100);
    groups.iter().take(max).map(|group| Share { colour: group.mean(), percent: percent(group) }).collect()
}

fn distance(one: Colour, other: Colour) -> i64 {
    one.0.iter().zip(other.0).map(|(a, b)| (i64::from(*a) - i64::from(b)).pow(2)).sum()
}
