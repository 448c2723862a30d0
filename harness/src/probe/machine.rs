//! The facts of the machine that a result may depend on, and what should make a reader wary. Parent only.
//!
//! Everything is read from the kernel's files, as text, at one moment. What cannot be read is `None`, and for that
//! which matters a warning says so. Nothing here names the machine, its user or a path.

use serde::{Deserialize, Serialize};
use std::ffi::{CStr, OsStr};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One machine at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Processor as it names itself.
    pub cpu_model: Option<String>,
    /// Logical processors that are online.
    pub cpus_online: u64,
    /// Logical processors that this process may use (affinity and container limits applied).
    pub cpus_usable: u64,
    /// Revision of the processor's microcode.
    pub microcode: Option<String>,
    /// True if the processor says that it runs under a hypervisor.
    pub hypervisor: bool,
    /// Frequency governors of the processors, each name once; empty if the kernel shows none.
    pub governors: Vec<String>,
    /// Clock source of the kernel, `tsc` on a good day.
    pub clock_source: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory in bytes that could be used without swapping, as the kernel estimates it.
    pub memory_available_bytes: Option<u64>,
    /// Swap space in bytes.
    pub swap_bytes: Option<u64>,
    /// Swap space in use, in bytes.
    pub swap_used_bytes: Option<u64>,
    /// Size of an OS page in bytes.
    pub page_bytes: u64,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub thp_enabled: Option<String>,
    /// How hard the kernel tries for a huge page at a fault: `always`, `defer`, `madvise` and so on.
    pub thp_defrag: Option<String>,
    /// `vm.overcommit_memory`: 0 heuristic, 1 always, 2 never.
    pub overcommit: Option<String>,
    /// `kernel.randomize_va_space`: 0 off, 1 without the break, 2 full.
    pub aslr: Option<String>,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// Operating system, e.g. `Debian GNU/Linux 12 (bookworm)`.
    pub os: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// C library that this program runs on.
    pub glibc: String,
    /// Version of strace, if there is one.
    pub strace: Option<String>,
    /// Version of valgrind, if there is one.
    pub valgrind: Option<String>,
}

impl Machine {
    /// The machine as it is now. Takes some milliseconds: strace and valgrind are asked for their versions.
    pub fn read() -> Machine {
        let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
        let meminfo = text("/proc/meminfo").unwrap_or_default();
        let swap_bytes = meminfo_bytes(&meminfo, "SwapTotal");
        let swap_free = meminfo_bytes(&meminfo, "SwapFree");
        Machine {
            cpu_model: cpuinfo_value(&cpuinfo, "model name").map(str::to_owned),
            cpus_online: cpuinfo
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count() as u64,
            cpus_usable: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
            microcode: cpuinfo_value(&cpuinfo, "microcode").map(str::to_owned),
            hypervisor: cpuinfo_value(&cpuinfo, "flags")
                .is_some_and(|f| f.split(' ').any(|f| f == "hypervisor")),
            governors: governors(),
            clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            memory_bytes: meminfo_bytes(&meminfo, "MemTotal"),
            memory_available_bytes: available_memory(),
            swap_bytes,
            swap_used_bytes: swap_bytes
                .zip(swap_free)
                .map(|(all, free)| all.saturating_sub(free)),
            page_bytes: rustix::param::page_size() as u64,
            thp_enabled: chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
            thp_defrag: chosen("/sys/kernel/mm/transparent_hugepage/defrag"),
            overcommit: text("/proc/sys/vm/overcommit_memory"),
            aslr: text("/proc/sys/kernel/randomize_va_space"),
            load: text("/proc/loadavg").as_deref().and_then(load_averages),
            os: text("/etc/os-release").as_deref().and_then(pretty_name),
            kernel: text("/proc/sys/kernel/osrelease"),
            glibc: glibc_version(),
            strace: version_of("strace", "-V"),
            valgrind: version_of("valgrind", "--version"),
        }
    }

    /// What should make a reader wary of times measured here, each in a sentence that says what to do.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let cpus = self.cpus_online.max(1);
        match self.load {
            Some([load, ..]) if load > cpus as f64 / 2.0 => warnings.push(format!(
                "The load is {load:.1} on {cpus} processors: other work is running and will widen the intervals. Stop it, or wait."
            )),
            Some(_) => {}
            None => warnings.push("The load cannot be read: make sure that nothing else is running.".to_owned()),
        }
        if self.hypervisor {
            warnings.push(
                "This is a virtual machine: its neighbours share caches and memory with it unseen. Read ratios, not absolute times."
                    .to_owned(),
            );
        }
        match self.governors.as_slice() {
            [] => warnings.push(
                "The kernel shows no frequency governor: the clock frequency may change unseen. Trust the order of blocks, not single trials."
                    .to_owned(),
            ),
            [one] if one == "performance" => {}
            others => warnings.push(format!(
                "The frequency governor is {}: the clock frequency follows the load. Fix it with: cpupower frequency-set -g performance",
                others.join(", ")
            )),
        }
        if let Some(used) = self.swap_used_bytes.filter(|&used| used > 0) {
            warnings.push(format!(
                "{} MiB of swap are in use: memory has been short. Free some, or switch swap off with: swapoff -a",
                used.div_ceil(1 << 20)
            ));
        }
        if let Some(source) = self
            .clock_source
            .as_deref()
            .filter(|&source| source != "tsc")
        {
            warnings.push(format!(
                "The clock source is {source}, not tsc: reading the clock may cost as much as an allocation. Times of single calls mean little."
            ));
        }
        warnings
    }
}

/// Memory in bytes that this process could use without swapping: what the kernel estimates for the machine, or what
/// the tightest control group (version 2) leaves, whichever is less. `None` if the kernel does not say.
pub fn available_memory() -> Option<u64> {
    let machine = meminfo_bytes(&text("/proc/meminfo")?, "MemAvailable")?;
    let group = text("/proc/self/cgroup")
        .and_then(|groups| {
            groups
                .lines()
                .find_map(|line| line.strip_prefix("0::/").map(str::to_owned))
        })
        .and_then(|group| cgroup_room(Path::new("/sys/fs/cgroup"), Path::new(&group)));
    Some(group.map_or(machine, |room| room.min(machine)))
}

/// What the limits of `group` and the groups above it leave, in bytes. Cached file pages can be dropped: no loss.
fn cgroup_room(top: &Path, group: &Path) -> Option<u64> {
    let room = |group: &Path| {
        let folder = top.join(group);
        let number = |name: &str| {
            fs::read_to_string(folder.join(name))
                .ok()?
                .trim()
                .parse::<u64>()
                .ok()
        };
        let limit = number("memory.max")?; // "max" is no number: no limit here
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let cached = stat
            .lines()
            .find_map(|line| line.strip_prefix("inactive_file ")?.parse().ok())
            .unwrap_or(0);
        Some(limit.saturating_sub(number("memory.current")?.saturating_sub(cached)))
    };
    group.ancestors().filter_map(room).min()
}

/// Finds an executable file on `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    find_program_in(&std::env::var_os("PATH")?, name)
}

/// Finds an executable file in the folders of `path`, which is written as `PATH` is.
pub(super) fn find_program_in(path: &OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path)
        .map(|folder| folder.join(name))
        .find(|file| {
            file.metadata()
                .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        })
}

/// The first version number that a program prints about itself.
fn version_of(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(find_program(program)?)
        .arg(argument)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    first_version(&String::from_utf8_lossy(&output.stdout))
}

fn first_version(said: &str) -> Option<String> {
    let words = said.split(|c: char| c.is_whitespace() || c == '-');
    let mut versions =
        words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
    versions.next().map(str::to_owned)
}

fn glibc_version() -> String {
    // SAFETY: the function has no preconditions and returns a static string that ends with a zero.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    version.to_string_lossy().into_owned()
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The word in brackets, as the kernel marks a choice: `always [madvise] never`.
fn chosen(path: &str) -> Option<String> {
    bracketed(&text(path)?).map(str::to_owned)
}

fn bracketed(choices: &str) -> Option<&str> {
    Some(choices.split_once('[')?.1.split_once(']')?.0)
}

fn cpuinfo_value<'t>(cpuinfo: &'t str, key: &str) -> Option<&'t str> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// A line of `/proc/meminfo`, which counts in KiB, in bytes.
fn meminfo_bytes(meminfo: &str, key: &str) -> Option<u64> {
    let kib: u64 = cpuinfo_value(meminfo, key)?
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()?;
    Some(kib * 1024)
}

fn load_averages(loadavg: &str) -> Option<[f64; 3]> {
    let mut words = loadavg.split(' ').map(|word| word.parse().ok());
    Some([words.next()??, words.next()??, words.next()??])
}

fn pretty_name(os_release: &str) -> Option<String> {
    let value = os_release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches(['"', '\'']).to_owned())
}

fn governors() -> Vec<String> {
    let processors = fs::read_dir("/sys/devices/system/cpu")
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<String> = processors
        .filter_map(|processor| text(processor.path().join("cpufreq/scaling_governor")))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Machine {
        Machine {
            cpus_online: 4,
            governors: vec!["performance".to_owned()],
            clock_source: Some("tsc".to_owned()),
            load: Some([0.1, 0.2, 0.3]),
            swap_used_bytes: Some(0),
            ..Machine::default()
        }
    }

    #[test]
    fn this_machine_has_what_every_linux_shows() {
        let machine = Machine::read();
        assert!(machine.cpus_online >= 1 && machine.cpus_usable >= 1);
        assert!(machine.cpus_usable <= machine.cpus_online);
        assert!(machine.page_bytes >= 4096 && machine.page_bytes.is_power_of_two());
        let (all, available) = (
            machine.memory_bytes.unwrap(),
            machine.memory_available_bytes.unwrap(),
        );
        assert!(
            available > 0 && available <= all,
            "{available} of {all} bytes available"
        );
        assert!(machine.glibc.starts_with("2."), "{}", machine.glibc);
        assert!(machine.kernel.is_some() && machine.load.is_some() && machine.overcommit.is_some());
        assert_eq!(machine.strace.is_some(), find_program("strace").is_some());
        assert_eq!(
            machine.valgrind.is_some(),
            find_program("valgrind").is_some()
        );
    }

    #[test]
    fn json_goes_both_ways_and_old_files_stay_readable() {
        let machine = Machine::read();
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), machine);
        assert_eq!(
            serde_json::from_str::<Machine>("{}").unwrap(),
            Machine::default()
        );
    }

    #[test]
    fn a_quiet_machine_draws_no_warning_and_each_trouble_draws_one() {
        assert_eq!(quiet().warnings(), Vec::<String>::new());
        let only = |change: fn(&mut Machine), word: &str| {
            let mut machine = quiet();
            change(&mut machine);
            let warnings = machine.warnings();
            assert!(
                warnings.len() == 1 && warnings[0].contains(word),
                "{word}: {warnings:?}"
            );
        };
        only(
            |m| m.load = Some([2.1, 0.0, 0.0]),
            "load is 2.1 on 4 processors",
        );
        only(|m| m.load = None, "load cannot be read");
        only(|m| m.hypervisor = true, "virtual machine");
        only(|m| m.governors.clear(), "no frequency governor");
        only(|m| m.governors = vec!["powersave".to_owned()], "powersave");
        only(
            |m| m.governors.push("schedutil".to_owned()),
            "performance, schedutil",
        );
        only(|m| m.swap_used_bytes = Some(1), "1 MiB of swap");
        only(|m| m.clock_source = Some("hpet".to_owned()), "hpet");
    }

    #[test]
    fn the_kernels_words_are_understood() {
        assert_eq!(bracketed("always [madvise] never"), Some("madvise"));
        assert_eq!(bracketed("always"), None);
        let cpuinfo =
            "processor\t: 0\nmodel name\t: Some CPU @ 3.0GHz\nflags\t\t: fpu hypervisor\n";
        assert_eq!(
            cpuinfo_value(cpuinfo, "model name"),
            Some("Some CPU @ 3.0GHz")
        );
        assert_eq!(cpuinfo_value(cpuinfo, "model"), None);
        let meminfo = "MemTotal:       16384 kB\nHugePages_Total:       0\n";
        assert_eq!(meminfo_bytes(meminfo, "MemTotal"), Some(16384 * 1024));
        assert_eq!(meminfo_bytes(meminfo, "HugePages_Total"), None);
        assert_eq!(
            load_averages("0.13 0.52 0.32 1/234 5678"),
            Some([0.13, 0.52, 0.32])
        );
        assert_eq!(load_averages("high"), None);
        assert_eq!(
            pretty_name("ID=x\nPRETTY_NAME=\"X 1 (one)\"\n").as_deref(),
            Some("X 1 (one)")
        );
        assert_eq!(
            first_version("strace -- version 6.1\nCopyright (c) 1991-2022").as_deref(),
            Some("6.1")
        );
        assert_eq!(
            first_version("valgrind-3.19.0\n").as_deref(),
            Some("3.19.0")
        );
        assert_eq!(first_version("no idea"), None);
    }

    #[test]
    fn the_tightest_control_group_decides() {
        let top = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            let path = top.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        let room = |group: &str| cgroup_room(top.path(), Path::new(group));
        write("outer/inner/memory.max", "max\n");
        assert_eq!(room("outer/inner"), None);
        write("outer/memory.max", "1000\n");
        write("outer/memory.current", "700\n");
        write("outer/memory.stat", "anon 400\ninactive_file 200\n");
        assert_eq!(room("outer/inner"), Some(500));
        write("outer/inner/memory.max", "100\n");
        write("outer/inner/memory.current", "130\n");
        assert_eq!(room("outer/inner"), Some(0));
        assert_eq!(room("elsewhere"), None);
    }
}
