import Figures
import Work

/// The memory that a module costs the host beyond opening it: anonymous memory, which cannot be dropped.
struct Memory {
    let effort: Effort

    init(_ effort: Effort) { self.effort = effort }

    func rows() throws -> [Row] { try (effort.isCheck ? [3] : [10, 100, 1_000]).map(row) }

    private func row(_ size: Int) throws -> Row {
        let temporary = TemporaryFolder()
        let folder = temporary.folder("plugins")
        try NumberedModules.writeAll(size, to: folder)
        // The memory that a process takes once, with its first module, does not count.
        let one = temporary.folder("one")
        try NumberedModules.write(1, to: one)
        var (ours, floor, own) = ([Double](), [Double](), [Double]())
        for _ in 0..<min(3, effort.repetitions) {  // It is almost the same each time.
            let hosts = try Once.host.apart(folder).memory - Once.host.apart(one).memory
            let opened = try Once.open.apart(folder).memory - Once.open.apart(one).memory
            let active = try Once.activate.apart(folder).memory - Once.activate.apart(one).memory
            ours.append((hosts - opened) / Double(size - 1) / 1024)
            floor.append(opened / Double(size - 1) / 1024)
            own.append((active - opened) / Double(size - 1) / 1024)
        }
        var row = Row("memory of a module with ten actions, beyond dlopen", size: size, unit: "KiB", of: ours)
        row.floors = [
            Row.Other("dlopen itself", of: floor),
            Row.Other("what the module takes itself when it is asked and activated", of: own),
        ]
        row.goal = Goal(atMost: 16)
        return row
    }
}
