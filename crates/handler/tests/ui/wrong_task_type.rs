use poolwright_derive::TaskType;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, TaskType)]
struct Unnamed;

#[derive(Serialize, Deserialize, TaskType)]
#[task = "image:resize"]
struct Misspelled;

#[derive(Serialize, Deserialize, TaskType)]
#[task(image_resize)]
struct Unquoted;

#[derive(Serialize, Deserialize, TaskType)]
#[task(queue = "low")]
struct UnknownKey;

#[derive(Serialize, Deserialize, TaskType)]
#[task("a", name = "b")]
struct Twice;

#[derive(Serialize, Deserialize, TaskType)]
#[task("a\nb")]
struct Control;

#[derive(Serialize, Deserialize, TaskType)]
#[task("a")]
struct Borrowing<'a>(&'a str);

fn main() {}
