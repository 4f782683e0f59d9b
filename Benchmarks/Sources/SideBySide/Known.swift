import Figures
import Foundation
import Work

/// Starts with modules that an earlier host has read, the first calls of such modules, and the end of a host.
struct Known {
    let effort: Effort

    init(_ effort: Effort) { self.effort = effort }

    func rows() throws -> [Row] {
        var rows = try sizes.map(start)
        for (module, language, limit) in [("PlainModule", "C", 5.0), ("NumberedModule", "Swift", 15.0)] {
            rows.append(try firstCall(module, language, limit))
        }
        return rows + (try sizes.map(end))
    }

    private var sizes: [Int] { effort.isCheck ? [3] : [10, 1_000] }

    private func start(_ size: Int) throws -> Row {
        let temporary = TemporaryFolder()
        let folder = temporary.folder("plugins")
        try NumberedModules.writeAll(size, to: folder)
        try read(folder)
        var row = try effort.row(
            "start with known Swift modules", size: size, .known, floors: [("walk and stat", .stat)], in: folder)
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
        var row = try effort.row(
            "first call of a known module in \(language)", .firstCall, floors: [("copy and open", .copyAndOpen)],
            in: folder)
        row.goal = Goal(atMost: limit)
        return row
    }

    private func end(_ size: Int) throws -> Row {
        let temporary = TemporaryFolder()
        let folder = temporary.folder("plugins")
        try NumberedModules.writeAll(size, to: folder)
        return try effort.row("end of a host with Swift modules", size: size, .end, in: folder)
    }
}
