import Figures
import Foundation
import Glibc
import PluginABI
import PluginHost
import Work

/// Measures the time from the moment a new file is complete in a watched folder to the first call that succeeds.
struct Arrival {
    let effort: Effort

    init(_ effort: Effort) { self.effort = effort }

    func rows() throws -> [Row] {
        var rows: [Row] = []
        for size in effort.isCheck ? [3] : [10, 100, 1_000] { rows += try effort.referenced { try self.rows(size) } }
        return rows
    }

    /// Writes files and deletes them, so that the kernel writes the new ones to memory that the machine has used before.
    /// Memory that it has not used is first provided by the hypervisor, page by page, which takes longer than writing.
    private func touchMemory(in folder: String) throws {
        guard !effort.isCheck else { return }
        let bytes = Data(repeating: 1, count: 4 << 20)
        for number in 0..<160 { try bytes.write(to: URL(fileURLWithPath: "\(folder)/\(number)")) }
        try FileManager.default.removeItem(atPath: folder)
    }

    /// - Parameter size: How many modules there are already.
    private func rows(_ size: Int) throws -> [Row] {
        let temporary = TemporaryFolder()
        let (folder, aside) = (temporary.folder("plugins"), temporary.folder("aside"))
        try NumberedModules.writeAll(size, to: folder)
        let host = try PluginHost.bench(folder: folder, in: temporary, watches: true)
        try touchMemory(in: temporary.folder("memory"))
        var times: [Double] = []
        for number in size..<size + (effort.isCheck ? 2 : 100) {
            try NumberedModules.write(number, to: aside, named: "new")
            let name = NumberedModules.name(number)
            let start = now()
            guard rename("\(aside)/new.so", "\(folder)/lib\(name).so") == 0 else { throw Failure("No rename.") }
            while (try? host.perform(name, "number", ["n": 1])) == nil {
                if now() - start > 20e9 { throw Failure("\(name) could not be called within 20 seconds.") }
                usleep(200)
            }
            times.append((now() - start) / 1e6)
        }
        let stat = try Once.stat.apart(folder).time / 1e6
        var median = Row("new file to first call, median", size: size, unit: "ms", of: times)
        median.goal = Goal(atMost: 15, growth: 1.3)
        var last = Row("new file to first call, 99th percentile", size: size, unit: "ms", ours: times.quantile(0.99))
        last.goal = Goal(atMost: 40)
        return [median, last].map { row in
            var row = row
            row.floors = [Row.Other("stat of all files", stat)]
            return row
        }
    }
}
