//! Backups that lines of changes need.

use trestle_backup::CHANGES;

use super::*;

impl World {
    /// With continuous backups, of a data directory that has nothing yet.
    fn continuous() -> Self {
        let mut world = Self::new(|settings| settings.continuous = true);
        world.backups.line_dir = Some(world.program.path().to_owned());
        fs::create_dir(world.program.path().join(CHANGES)).unwrap();
        world.prints("list", Some(json!({})));
        world.prints("create", Some(world.backup(Duration::ZERO)));
        world
    }

    /// A command that follows began a line.
    fn begin_line(&self, id: &str) {
        let next = json!({ "seq": 1, "position": "1:2:03", "skip": 0, "newest": 4, "at": 5 });
        let noted = json!({
            "line": id, "previous": null, "epoch": 0, "next": next, "writing": null,
        });
        let file = self.program.path().join(CHANGES).join("LINE");
        fs::write(file, noted.to_string()).unwrap();
    }

    /// The same after a restart.
    fn restart(&mut self) {
        let restarted = scheduled(&self.program, &self.clock, |settings| {
            settings.continuous = true;
            settings.every = "30d".to_owned();
        });
        let line_dir = self.backups.line_dir.take();
        self.backups = ScheduledBackups { line_dir, ..restarted };
    }
}

#[tokio::test]
async fn the_first_backup_waits_for_the_line_that_it_is_to_be_in() {
    let mut world = World::continuous();
    assert_eq!(world.step_after(Duration::ZERO).await, ["list"]);
    assert!(world.step_after(Duration::from_secs(5)).await.is_empty());
    world.begin_line("a");
    assert_eq!(world.step_after(Duration::from_secs(5)).await, ["create"]);
    assert!(world.step_after(Duration::from_secs(20)).await.is_empty(), "one is enough");
}

#[tokio::test]
async fn a_backup_is_made_without_a_line_where_none_begins() {
    let mut world = World::continuous();
    assert_eq!(world.step_after(Duration::ZERO).await, ["list"]);
    assert!(world.step_after(LINE_WITHIN - Duration::from_secs(1)).await.is_empty());
    assert_eq!(world.step_after(Duration::from_secs(1)).await, ["create"]);
    world.begin_line("a");
    assert_eq!(world.step_after(MINUTE).await, ["create"], "it was not in the line");
}

#[tokio::test]
async fn a_new_line_needs_a_backup_of_its_own_at_once() {
    let mut world = World::continuous();
    world.begin_line("a");
    assert_eq!(world.step_after(Duration::ZERO).await, ["list", "create"]);
    assert!(world.step_after(MINUTE).await.is_empty());
    world.begin_line("b");
    assert_eq!(world.step_after(MINUTE).await, ["create"]);
    assert!(world.step_after(MINUTE).await.is_empty());
}

#[tokio::test]
async fn a_restart_in_a_line_with_a_backup_makes_no_other() {
    let mut world = World::continuous();
    world.begin_line("a");
    assert_eq!(world.step_after(Duration::ZERO).await, ["list", "create"]);
    world.prints("list", Some(world.backup(Duration::ZERO)));
    world.restart();
    assert_eq!(world.step_after(MINUTE).await, ["list"]);
    assert!(world.step_after(MINUTE).await.is_empty());

    // In another one, as after a gap.
    world.begin_line("b");
    world.restart();
    assert_eq!(world.step_after(MINUTE).await, ["list", "create"]);
}

#[tokio::test]
async fn a_backup_of_a_line_that_fails_is_repeated_as_any_other() {
    let mut world = World::continuous();
    world.begin_line("a");
    world.prints("create", None);
    assert_eq!(world.step_after(Duration::ZERO).await, ["list", "create"]);
    assert!(world.step_after(Duration::from_secs(59)).await.is_empty(), "not at once");
    assert_eq!(world.step_after(Duration::from_secs(1)).await, ["create"]);
    assert!(world.step_after(MINUTE).await.is_empty(), "two minutes after the second failure");
    world.prints("create", Some(world.backup(Duration::ZERO)));
    assert_eq!(world.step_after(MINUTE).await, ["create"]);
    assert!(world.step_after(MINUTE).await.is_empty());
}

#[tokio::test]
async fn a_line_that_cannot_be_noted_is_known_until_the_process_ends() {
    let mut world = World::continuous();
    world.begin_line("a");
    // In the place of the note.
    fs::create_dir(world.program.path().join(CHANGES).join("BASED")).unwrap();
    assert_eq!(world.step_after(Duration::ZERO).await, ["list", "create"]);
    assert!(world.step_after(MINUTE).await.is_empty());
    world.restart();
    assert_eq!(world.step_after(MINUTE).await, ["list", "create"], "one backup more");
}

#[tokio::test]
async fn damage_and_lines_that_cannot_be_read_make_no_backup_sooner() {
    let mut world = World::continuous();
    world.begin_line("a");
    let damage = json!([{ "object": "blob/a", "reason": "it is missing" }]);
    let mut damaged = world.backup(Duration::ZERO);
    damaged["damage"] = damage;
    world.prints("create", Some(damaged));
    assert_eq!(world.step_after(Duration::ZERO).await, ["list", "create"]);
    assert!(world.step_after(MINUTE).await.is_empty(), "it is a backup of the rest");
    fs::write(world.program.path().join(CHANGES).join("LINE"), "{").unwrap();
    assert!(world.step_after(MINUTE).await.is_empty());
}
