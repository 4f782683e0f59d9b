import Foundation
import Glibc
import Work

/// A start with many modules.
struct Start {
    let effort: Effort

    init(_ effort: Effort) { self.effort = effort }

    func rows() throws -> [Row] {
        try (effort.isCheck ? [3] : [10, 100, 1_000]).flatMap { size in try effort.referenced { [try row(size)] } }
    }

    private func row(_ size: Int) throws -> Row {
        let temporary = TemporaryFolder()
        let folder = temporary.folder("plugins")
        try NumberedModules.writeAll(size, to: folder)
        forget(folder)
        let first = try Once.host.apart(folder).time
        forget(folder)
        let firstFloor = try Once.copyAndOpen.apart(folder).time
        var (ours, floor, stat) = ([Double](), [Double](), [Double]())
        for _ in 0..<effort.repetitions {
            ours.append(try Once.host.apart(folder).time / 1e6)
            floor.append(try Once.copyAndOpen.apart(folder).time / 1e6)
            stat.append(try Once.stat.apart(folder).time / 1e6)
        }
        var row = Row("start with many Swift modules", size: size, unit: "ms", of: ours)
        row.first = first / 1e6
        row.floors = [
            Row.Other(name: "copy and open (first: \(Row.text(firstFloor / 1e6)))", value: floor.median),
            Row.Other(name: "stat", value: stat.median),
        ]
        row.peer = "start"
        row.goal = Goal(timesFloor: 1.5)
        return row
    }

    /// Lets the kernel drop the files from its page cache.
    private func forget(_ folder: String) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
            let file = open("\(folder)/\(name)", O_RDONLY)
            guard file >= 0 else { continue }
            fsync(file)
            posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)
            close(file)
        }
    }
}
