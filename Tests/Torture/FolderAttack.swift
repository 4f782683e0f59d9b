import Foundation

/// A folder in which everything happens at once while the host watches it. In the end, the host serves the files in it.
final class FolderAttack: Attack {
    private let program: Program
    private let victims: Victims
    private var operations = 0

    init(_ program: Program, _ victims: Victims) { (self.program, self.victims) = (program, victims) }

    var summary: String { "\(operations) operations" }

    func run(in folder: Folder, _ random: inout SplitMix) throws {
        let plugins = try folder.folder("plugins")
        let other = try folder.folder("other")
        let socket = "\(folder.path)/s"
        let host = try program.start(["run", "--plugins", plugins, "--socket", socket], in: folder)
        guard eventually(within: 60, { Client.ask(socket, "list", seconds: 5) != nil }) else {
            throw Finding(message: "the host does not answer at its start; it \(host.wait(seconds: 0).description)")
        }
        for _ in 0..<60 {
            try operate(plugins, other, &random)
            operations += 1
            if random.oneIn(3) { usleep(UInt32(random.below(30_000))) }
            if random.oneIn(30), host.isRunning, random.oneIn(2) { host.signal(SIGTSTP) }
        }
        // Finally, replaces the content of the folder.
        for name in try FileManager.default.contentsOfDirectory(atPath: plugins) {
            try FileManager.default.removeItem(atPath: "\(plugins)/\(name)")
        }
        // The host sees the empty folder first: a file that became another module between two checks would be a
        // conflict.
        var wanted: [String: String] = [:]
        try require(wanted, host, socket)
        for number in 0..<(1 + random.below(5)) {
            try put(victims.module(number, version: random.below(800)), at: "\(plugins)/\(number).so")
            wanted["\(number).so"] = "active"
        }
        try require(wanted, host, socket)
        host.signal(SIGTERM)
        let outcome = host.wait(seconds: 40)
        guard outcome.signal == 0, outcome.code == 0, !outcome.isLate else {
            throw Finding(message: "after SIGTERM the host \(outcome.description)")
        }
    }

    /// Waits until the host has exactly these files.
    private func require(_ wanted: [String: String], _ host: Program.Running, _ socket: String) throws {
        var seen: [String: String] = [:]
        let isTrue = eventually(within: 40) {
            host.signal(SIGCONT)  // Again and again: it may arrive before the stop that SIGTSTP has begun.
            // A missing answer does not mean an empty folder: the host may still be suspended.
            guard let answer = Client.ask(socket, "list", seconds: 10) else { return false }
            let object = try? JSONSerialization.jsonObject(with: Data(answer.utf8)) as? [String: Any]
            let result = (object?["result"]).flatMap { try? JSONSerialization.data(withJSONObject: $0) }
            seen = states(String(decoding: result ?? Data(), as: UTF8.self))
            return seen == wanted
        }
        guard host.isRunning else { throw Finding(message: "the host \(host.wait(seconds: 1).description)") }
        guard isTrue else { throw Finding(message: "the folder contains \(wanted), but the host has \(seen)") }
    }

    private func operate(_ plugins: String, _ other: String, _ random: inout SplitMix) throws {
        let names = ["0.so", "1.so", "2.so", "é.so", "e\u{301}.so", "a\nb.so", "x.routes.json", "sub"]
        let path = "\(plugins)/\(random.pick(names))"
        func clear() { try? FileManager.default.removeItem(atPath: path) }
        switch random.below(14) {
        case 0...3: try? put(victims.module(random.below(5), version: random.below(800)), at: path)
        case 4: clear()
        case 5: rename(path, "\(plugins)/\(random.pick(names))")
        case 6:
            // The file is written in place, as by `cp`. A FIFO would block the writer.
            var status = stat()
            guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
            let bytes = victims.module(random.below(5), version: random.below(800))
            try? Data(bytes[..<(random.oneIn(2) ? bytes.count : random.below(bytes.count))]).write(
                to: URL(filePath: path))
        case 7:
            clear()
            mkfifo(path, 0o644)
        case 8:
            clear()
            symlink(random.pick(["/dev/zero", path, "nowhere", "\(other)/a.so", "/"]), path)
        case 9:
            clear()
            mkdir(path, 0o755)
        // Nothing outside the round's folder may change: neither of these two operations follows a link.
        case 10: fchmodat(AT_FDCWD, path, random.pick([0, 0o644, 0o666, 0o777, 0o4755]), AT_SYMLINK_NOFOLLOW)
        case 11:
            let descriptor = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK)
            guard descriptor >= 0 else { return }
            ftruncate(descriptor, off_t(random.pick([0, 1, 64, 4096, 1 << 30])))
            close(descriptor)
        case 12:
            try? put(victims.module(random.below(5)), at: "\(other)/a.so")
            clear()
            link("\(other)/a.so", path)
        default:
            // The folder disappears for a moment.
            let away = "\(other)/away"
            rename(plugins, away)
            usleep(UInt32(random.below(20_000)))
            rename(away, plugins)
        }
    }
}
