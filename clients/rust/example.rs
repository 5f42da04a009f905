//! example [--share] [--wait] UUID COMMAND…: the command runs while it holds the GPU. Status 75: it is taken.

mod hold;

use std::os::unix::io::IntoRawFd;
use std::os::unix::process::CommandExt;
use std::{env, process, thread, time};

extern "C" {
    fn fcntl(file: i32, what: i32, ...) -> i32;
}
const SET_FLAGS: i32 = 2;

fn main() {
    let mut words: Vec<String> = env::args().skip(1).collect();
    let options: Vec<String> = words.iter().take_while(|word| word.starts_with("--")).cloned().collect();
    let has = |name: &str| options.iter().any(|word| word == name);
    words.drain(..options.len());
    let uuid = words[0].as_str();
    while !hold::has_by_lease(uuid) {
        match hold::try_hold(uuid, has("--share")) {
            Ok(Some(file)) => {
                // The command holds the GPU as long as it lives.
                unsafe { fcntl(file.into_raw_fd(), SET_FLAGS, 0) };
                break;
            }
            Ok(None) if has("--wait") => thread::sleep(time::Duration::from_secs(1)),
            Ok(None) => process::exit(75),
            Err(error) => {
                eprintln!("example: no lock file of {uuid}: {error}; an administrator can make it: sudo berth init");
                process::exit(69);
            }
        }
    }
    let failure = process::Command::new(&words[1]).args(&words[2..]).env("CUDA_VISIBLE_DEVICES", uuid).exec();
    eprintln!("example: {}: {failure}", words[1]);
    process::exit(127);
}
