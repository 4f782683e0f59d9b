import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

@Suite struct FolderWatcherTests {
    let folder: TemporaryFolder
    let changes = WatcherChanges()

    init() throws { folder = try TemporaryFolder() }

    private func watch(_ folders: String..., quietTime: Duration = .milliseconds(5)) -> FolderWatcher {
        let watcher = FolderWatcher(folders: folders, quietTime: quietTime) { [changes] in changes.add($0.folders) }
        watcher.start()
        return watcher
    }

    @Test func `A file that is renamed into the folder is reported`() throws {
        let (plugins, other) = (try folder.folder("plugins"), try folder.folder("other"))
        let file = try folder.file("other/a.so")
        let watcher = watch(plugins, other)
        defer { watcher.stop() }
        rename(file, "\(plugins)/a.so")
        #expect(eventually { changes.contain(plugins) && changes.contain(other) })
        #expect(watcher.problem == nil)
    }

    @Test func `A file that is written is reported when it is closed`() throws {
        let plugins = try folder.folder("plugins")
        let watcher = watch(plugins)
        defer { watcher.stop() }
        let descriptor = open("\(plugins)/a.so", O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        #expect(eventually { changes.contain(plugins) })
        changes.forget()
        write(descriptor, "half", 4)
        close(descriptor)
        #expect(eventually { changes.contain(plugins) })
    }

    @Test func `A file that is removed, or whose mode changes, is reported`() throws {
        let file = try folder.file("a.so")
        let watcher = watch(folder.path)
        defer { watcher.stop() }
        chmod(file, 0o600)
        #expect(eventually { changes.contain(folder.path) })
        changes.forget()
        unlink(file)
        #expect(eventually { changes.contain(folder.path) })
    }

    @Test func `Files with other names are not reported`() throws {
        let (plugins, last) = (try folder.folder("plugins"), try folder.folder("last"))
        let watcher = watch(plugins, last)
        defer { watcher.stop() }
        for name in [".a.so", "a.so.tmp", "readme"] { try folder.file("plugins/\(name)") }
        // Events arrive in order: when this change is reported, the earlier ones were ignored.
        try folder.file("last/a.so")
        #expect(eventually { changes.contain(last) })
        #expect(!changes.contain(plugins))
    }

    @Test func `A folder that vanishes and returns is reported and watched again`() throws {
        let plugins = try folder.folder("plugins")
        let watcher = watch(plugins)
        defer { watcher.stop() }
        try FileManager.default.removeItem(atPath: plugins)
        #expect(eventually { changes.contain(plugins) })
        changes.forget()
        try folder.folder("plugins")
        #expect(eventually { changes.contain(plugins) })
        changes.forget()
        try folder.file("plugins/a.so")
        #expect(eventually { changes.contain(plugins) })
    }

    @Test func `A folder that does not exist yet is reported when it is created`() throws {
        let plugins = "\(folder.path)/later"
        let watcher = watch(plugins)
        defer { watcher.stop() }
        try folder.folder("later")
        #expect(eventually { changes.contain(plugins) })
    }

    @Test func `A folder whose link is switched is watched at its new location`() throws {
        let (one, two) = (try folder.folder("one"), try folder.folder("two"))
        let link = "\(folder.path)/plugins"
        symlink(one, link)
        let watcher = watch(link)
        defer { watcher.stop() }
        symlink(two, "\(link).new")
        rename("\(link).new", link)
        #expect(eventually { changes.contain(link) })
        changes.forget()
        try folder.file("two/a.so")
        #expect(eventually { changes.contain(link) })
    }

    @Test func `Changes are not reported after stop, and reported again after the next start`() throws {
        let watcher = watch(folder.path)
        watcher.stop()
        watcher.stop()
        try folder.file("a.so")
        watcher.start()
        #expect(changes.isEmpty)
        try folder.file("b.so")
        #expect(eventually { changes.contain(folder.path) })
        watcher.stop()
    }

    @Test func `A callback can stop its watcher`() throws {
        let box = Mutex<FolderWatcher?>(nil)
        let watcher = FolderWatcher(folders: [folder.path]) { [changes] in
            box.withLock { $0 }?.stop()
            changes.add($0.folders)
        }
        box.withLock { $0 = watcher }
        watcher.start()
        try folder.file("a.so")
        #expect(eventually { !changes.isEmpty })
        watcher.stop()
        box.withLock { $0 = nil }
    }

    // MARK: Changes that occur together

    @Test func `Files that are added in quick succession are one change`() throws {
        let plugins = try folder.folder("plugins")
        let watcher = watch(plugins, quietTime: .milliseconds(100))
        defer { watcher.stop() }
        let start = ContinuousClock.now
        for number in 0..<50 {
            rename(try folder.file("\(number)"), "\(plugins)/\(number).so")
            usleep(4000)
        }
        #expect(eventually { !changes.isEmpty })
        // However slow the machine is, each report has waited that long for further changes.
        let count = changes.count
        #expect(count <= Int((ContinuousClock.now - start) / .milliseconds(100)) + 1)
    }

    @Test func `Changes that never pause are still reported`() throws {
        let plugins = try folder.folder("plugins")
        let watcher = watch(plugins, quietTime: .milliseconds(100))
        defer { watcher.stop() }
        var number = 0
        #expect(
            eventually {
                number += 1
                _ = try? folder.file("plugins/\(number % 10).so")
                return changes.count > 2
            })
    }

    @Test func `Without a quiet time, each change is reported at once`() throws {
        let plugins = try folder.folder("plugins")
        let watcher = watch(plugins, quietTime: .zero)
        defer { watcher.stop() }
        try folder.file("plugins/a.so")
        #expect(eventually { changes.contain(plugins) })
    }

    @Test func `All changes while a change is handled are one change`() throws {
        let plugins = try folder.folder("plugins")
        let (hasBegun, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let watcher = FolderWatcher(folders: [plugins], quietTime: .zero) { [changes] changed in
            if changes.isEmpty {
                changes.add(changed.folders)
                hasBegun.signal()
                mayEnd.wait()
            } else {
                changes.add(changed.folders)
            }
        }
        watcher.start()
        rename(try folder.file("first"), "\(plugins)/first.so")
        hasBegun.wait()
        for number in 0..<50 { rename(try folder.file("\(number)"), "\(plugins)/\(number).so") }
        mayEnd.signal()
        #expect(eventually { changes.count > 1 })
        watcher.stop()
        #expect(changes.count == 2)
    }

    // MARK: A folder that cannot be read

    @Test func `A folder that is renamed away and back is reported both times, and watched again`() throws {
        let (plugins, away) = (try folder.folder("plugins"), "\(folder.path)/away")
        let watcher = watch(plugins)
        defer { watcher.stop() }
        rename(plugins, away)
        #expect(eventually { changes.contain(plugins) })
        changes.forget()
        rename(away, plugins)
        #expect(eventually { changes.contain(plugins) })
        changes.forget()
        try folder.file("plugins/a.so")
        #expect(eventually { changes.contain(plugins) })
        #expect(watcher.problem == nil)
    }

    @Test func `A folder that is made unreadable and readable again is reported both times, and stays watched`()
        throws
    {
        let plugins = try folder.folder("plugins")
        let watcher = watch(plugins)
        defer { watcher.stop() }
        chmod(plugins, 0)
        #expect(eventually { changes.contain(plugins) })
        changes.forget()
        chmod(plugins, 0o755)
        #expect(eventually { changes.contain(plugins) })
        changes.forget()
        try folder.file("plugins/a.so")
        #expect(eventually { changes.contain(plugins) })
    }

    /// Runs in a separate process, whose descriptors are used up.
    @Test(arguments: [0, 1]) func `A watcher that starts without free descriptors watches once there are some`(
        free: Int
    ) async {
        await #expect(processExitsWith: .success) { [free = free as Int] in
            let (folder, changes) = (try TemporaryFolder(), WatcherChanges())
            let watcher = FolderWatcher(folders: [folder.path], lookInterval: .milliseconds(20)) {
                changes.add($0.folders)
            }
            let used = try useUpDescriptors(leaving: free)
            watcher.start()
            let problem = try #require(watcher.problem?.message)
            try #require(problem.contains("plugins folders cannot be watched") && problem.contains("once a second"))
            for descriptor in used { close(descriptor) }
            try #require(eventually { watcher.problem == nil })
            changes.forget()
            try folder.file("a.so")
            try #require(eventually { changes.contain(folder.path) })
            watcher.stop()
        }
    }

    @Test func `A file that appears before the folder can be watched is reported`() async {
        await #expect(processExitsWith: .success) {
            let (folder, other, changes) = (try TemporaryFolder(), try TemporaryFolder(), WatcherChanges())
            let file = try other.file("a.so")
            let watcher = FolderWatcher(folders: [folder.path]) { changes.add($0.folders) }
            // With one descriptor, the folder can be read, but not watched.
            let used = try useUpDescriptors(leaving: 1)
            watcher.start()
            try #require(watcher.problem != nil)
            try #require(rename(file, "\(folder.path)/a.so") == 0)
            for descriptor in used { close(descriptor) }
            try #require(eventually { changes.contain(folder.path) })
            watcher.stop()
        }
    }

    @Test(.enabled(if: geteuid() != 0, "root can read everything"))
    func `A folder that cannot be watched at first is watched when it can be`() throws {
        let plugins = try folder.folder("plugins", mode: 0)
        let watcher = watch(plugins)
        defer { watcher.stop() }
        #expect(watcher.problem?.message.contains("\(plugins) cannot be watched") == true)
        chmod(plugins, 0o755)
        #expect(eventually { changes.contain(plugins) })
        #expect(watcher.problem == nil)
    }
}
