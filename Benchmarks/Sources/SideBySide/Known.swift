import Foundation
import Work

/// Starts with modules that an earlier host has read, the first calls of such modules, and the end of a host.
struct Known {
    let effort: Effort

    init(_ effort: Effort) { self.effort = effort }

    func rows() throws -> [Row] {
        var rows = try sizes.flatMap { size in try effort.referenced { [try start(size)] } }
        for (module, language, limit) in [("PlainModule", "C", 5.0), ("NumberedModule", "Swift", 15.0)] {
            rows += try effort.referenced { [try firstCall(module, language, limit)] }
        }
        return rows + (try sizes.flatMap { size in try effort.referenced { [try end(size)] } })
    }

    private var sizes: [Int] { effort.isCheck ? [3] : [10, 1_000] }

    private func start(_ size: Int) throws -> Row {
        let temporary = TemporaryFolder()
        let folder = temporary.folder("plugins")
        try NumberedModules.writeAll(size, to: folder)
        try read(folder)
        var (ours, stat) = ([Double](), [Double]())
        for _ in 0..<effort.repetitions {
            ours.append(try Once.known.apart(folder).time / 1e6)
            stat.append(try Once.stat.apart(folder).time / 1e6)
        }
        var row = Row("start with known Swift modules", size: size, unit: "ms", of: ours)
        row.floors = [Row.Other(name: "walk and stat", value: stat.median)]
        row.peer = "known"
        row.goal = Goal(atMost: 10)
        return row
    }

    /// Runs a host that reads all files, for later hosts. Files that have just changed are not recorded.
    private func read(_ folder: String) throws {
        usleep(50_000)
        _ = try Once.known.apart(folder)
    }

    private func firstCall(_ module: String, _ language: String, _ limit: Double) throws -> Row {
        let temporary = TemporaryFolder()
        let folder = temporary.folder("plugins")
        try FileManager.default.copyItem(atPath: Opened.module(module), toPath: "\(folder)/lib\(module).so")
        try read(folder)
        var (ours, floor) = ([Double](), [Double]())
        for _ in 0..<effort.repetitions {
            ours.append(try Once.firstCall.apart(folder).time / 1e6)
            floor.append(try Once.copyAndOpen.apart(folder).time / 1e6)
        }
        var row = Row("first call of a known module in \(language)", unit: "ms", of: ours)
        row.floors = [Row.Other(name: "copy and open", value: floor.median)]
        row.goal = Goal(atMost: limit)
        return row
    }

    private func end(_ size: Int) throws -> Row {
        let temporary = TemporaryFolder()
        let folder = temporary.folder("plugins")
        try NumberedModules.writeAll(size, to: folder)
        let ours = try (0..<effort.repetitions).map { _ in try Once.end.apart(folder).time / 1e6 }
        return Row("end of a host with Swift modules", size: size, unit: "ms", of: ours)
    }
}
