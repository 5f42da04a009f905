//! Holds a GPU by the lock that all programs of a machine share: docs/standard.md, version 1.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::io::AsRawFd;
use std::path::{Path, PathBuf};

extern "C" {
    fn flock(file: i32, how: i32) -> i32;
}
const SHARED_EXCLUSIVE_AT_ONCE: [i32; 3] = [1, 2, 4];
const READINGS: i32 = 5; // of /proc/locks: while others unlock, the kernel may leave out a lock in one
const NONBLOCK: i32 = 0o4000; // as on x86, ARM, POWER and RISC-V

fn directory() -> PathBuf {
    match std::env::var("BERTH_DIR") {
        Ok(named) if !named.is_empty() => named.into(),
        _ if Path::new("/run/berth").is_dir() => "/run/berth".into(),
        _ => "/tmp/berth".into(),
    }
}

/// Whether a process has one of these tickets. The kernel knows; nothing is opened.
fn is_alive(tickets: impl Iterator<Item = PathBuf>) -> bool {
    // What others than its owner may write is nobody's ticket.
    let is_ticket = |file: &fs::Metadata| file.is_file() && file.mode() & 0o022 == 0;
    let files = tickets.filter_map(|path| fs::symlink_metadata(path).ok());
    let inodes: HashSet<u64> = files.filter(is_ticket).map(|file| file.ino()).collect();
    let has_it = |line: &str| {
        let word: Vec<&str> = line.split_whitespace().collect();
        let inode = word.get(5).and_then(|file| file.rsplit(':').next()?.parse().ok());
        inode.map_or(false, |inode| word[1] == "OFDLCK" && word[3] == "WRITE" && inodes.contains(&inode))
    };
    let locks = || fs::read_to_string("/proc/locks").unwrap_or_default();
    !inodes.is_empty() && (0..READINGS).any(|_| locks().lines().any(has_it))
}

/// Whether this process runs inside a lease that has the GPU.
pub fn has_by_lease(uuid: &str) -> bool {
    let (mut folder, mut text) = (directory(), Vec::new());
    for lease in std::env::var("BERTH_LEASE").unwrap_or_default().split('/') {
        let ticket = folder.join("leases").join(lease);
        text = fs::read(&ticket).unwrap_or_default();
        if !is_alive(std::iter::once(ticket)) {
            return false;
        }
        folder = folder.join("inside").join(lease);
    }
    let device = format!("device={uuid}");
    text.split(|&byte| byte == b'\n').any(|line| line == device.as_bytes())
}

/// The file that holds the GPU until its last copy is closed, close-on-exec. None: somebody has it, or waits for a GPU.
/// Error: there is no lock file; only an administrator makes one, by `sudo berth init`.
pub fn try_hold(uuid: &str, share: bool) -> io::Result<Option<File>> {
    let name: String = uuid.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    let path = directory().join("devices").join(name);
    if is_alive(fs::read_dir(directory().join("queue"))?.flatten().map(|ticket| ticket.path())) {
        return Ok(None);
    }
    let file = OpenOptions::new().read(true).write(true).custom_flags(NONBLOCK).open(&path)?;
    let [shared, exclusive, at_once] = SHARED_EXCLUSIVE_AT_ONCE;
    let is_locked = unsafe { flock(file.as_raw_fd(), if share { shared } else { exclusive } | at_once) } == 0;
    // A link differs from the file that it leads to, so a lock by a link is given back.
    let (locked, there) = (file.metadata()?, fs::symlink_metadata(&path).or_else(|_| fs::metadata("/"))?);
    let is_it = there.is_file() && (there.dev(), there.ino()) == (locked.dev(), locked.ino());
    Ok(Some(file).filter(|_| is_locked && is_it))
}
