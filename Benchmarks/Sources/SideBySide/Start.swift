import Figures
import Work

/// A start with many modules.
struct Start {
    let effort: Effort

    init(_ effort: Effort) { self.effort = effort }

    func rows() throws -> [Row] { try (effort.isCheck ? [3] : [10, 100, 1_000]).map(row) }

    private func row(_ size: Int) throws -> Row {
        let temporary = TemporaryFolder()
        let folder = temporary.folder("plugins")
        try NumberedModules.writeAll(size, to: folder)
        var row = try effort.row(
            "start with many Swift modules", size: size, .host,
            floors: [("copy and open", .copyAndOpen), ("stat", .stat)], in: folder)
        row.peer = "start"
        row.goal = Goal(timesFloor: 1.5)
        return row
    }
}
