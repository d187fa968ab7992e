//! The metrics of the process itself, under the names that clients of Prometheus give them: memory,
//! time of the processor, descriptors, start. Read from `/proc` at each collection; absent where the
//! system has none.

use std::fs;

use opentelemetry::metrics::Meter;
use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};
use trestle_rpc::semconv;

/// Field of `/proc/self/stat` with the start, in ticks since the boot; behind the name of the command.
const START_FIELD: usize = 19;

/// Observes the metrics on a meter.
pub(super) fn observe(meter: &Meter) {
    let gauge = |metric: semconv::Described, read: fn() -> Option<u64>| {
        let gauge = meter.u64_observable_gauge(metric.name).with_unit(metric.unit);
        let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
            if let Some(value) = read() {
                observer.observe(value, &[]);
            }
        });
        let _ = gauge.build();
    };
    gauge(semconv::PROCESS_MEMORY, resident_bytes);
    gauge(semconv::PROCESS_MEMORY_MAX, memory_limit);
    gauge(semconv::PROCESS_DESCRIPTORS, descriptors);
    gauge(semconv::PROCESS_DESCRIPTORS_MAX, || getrlimit(Resource::Nofile).current);
    gauge(semconv::PROCESS_START, start_seconds);
    let metric = semconv::PROCESS_CPU;
    let time = meter.f64_observable_counter(metric.name).with_unit(metric.unit);
    let time = time.with_description(metric.help);
    let _ = time.with_callback(|observer| observer.observe(processor_seconds(), &[])).build();
}

fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(page_size() as u64)
}

/// The limit of the container, where there is a smaller one than the memory of the machine.
fn memory_limit() -> Option<u64> {
    let read = |file| fs::read_to_string(file).ok();
    let text = read("/proc/meminfo")?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let machine = kilobytes.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)?;
    // `max`, or not there, outside of a container.
    let limit = read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse().ok());
    Some(limit.map_or(machine, |limit: u64| limit.min(machine)))
}

fn descriptors() -> Option<u64> {
    // Without the one that lists them.
    let count = fs::read_dir("/proc/self/fd").ok()?.count().checked_sub(1)?;
    u64::try_from(count).ok()
}

fn start_seconds() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, behind_name) = stat.rsplit_once(") ")?;
    let ticks: u64 = behind_name.split(' ').nth(START_FIELD)?.parse().ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
    boot.trim().parse::<u64>().ok()?.checked_add(ticks.checked_div(clock_ticks_per_second())?)
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = f64::from(u32::try_from(time.tv_nsec).unwrap_or(0));
    std::time::Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0)).as_secs_f64()
        + nanos / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_memory_time_descriptors_and_a_start() {
        let now = clock_gettime(ClockId::Realtime).tv_sec;
        let now = u64::try_from(now).expect("after 1970");

        assert!(resident_bytes().expect("bytes") > 1024 * 1024);
        assert!(memory_limit().expect("bytes") > resident_bytes().expect("bytes"));
        assert!(descriptors().expect("a count") >= 3);
        assert!(processor_seconds() > 0.0);
        let start = start_seconds().expect("a time");
        assert!(start <= now + 1 && now - start < 24 * 3600, "{start} {now}");
    }
}
