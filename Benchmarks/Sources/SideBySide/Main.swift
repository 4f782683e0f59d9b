import Figures
import Foundation
import Work

/// Measures the host beside the floors, and shows them beside the peers.
///
///     SideBySide run [--json FILE] [--peers FILE] [GROUP …]
///     SideBySide check
///     SideBySide instructions FILE [--write]
@main
struct Main {
    static func main() {
        Program.endInTime()
        defer { TemporaryFolder.removeAll() }
        do {
            try run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            FileHandle.standardError.write(Data("SideBySide: \(error)\n".utf8))
            TemporaryFolder.removeAll()
            exit(1)
        }
    }

    private static func run(_ arguments: [String]) throws {
        let rest = Array(arguments.dropFirst())
        switch arguments.first {
        case "run": try show(rest)
        case "check":
            for group in Group.allCases {
                let rows = try rows(of: group, isCheck: true)
                print("\(group): \(rows.count) \(rows.count == 1 ? "row" : "rows") could be measured")
            }
        case "instructions" where !rest.isEmpty:
            guard try Instructions.check(limits: rest[0], writes: rest.contains("--write")) else {
                throw Failure("A call has more instructions than its limit allows.")
            }
        // The commands that this program passes to itself:
        case "group" where rest.count > 1:
            guard let group = Group(rawValue: rest[0]) else { throw Failure("There is no group \(rest[0]).") }
            var effort = rest[1] == "check" ? Effort.check : Effort()
            if rest.count > 2 { effort.peers = try PeerPrograms(rest[2]) }
            let rows = try group.rows(effort)
            print(String(decoding: try JSONEncoder().encode(rows), as: UTF8.self))
        case "once" where rest.count == 2: try Once(rawValue: rest[0])?.run(rest[1])
        case "count" where rest.count == 2: try CountedCall(rawValue: rest[0])?.run(Int(rest[1]) ?? 0)
        default: throw Failure("run [--json FILE] [--peers FILE] [GROUP …] | check | instructions FILE [--write]")
        }
    }

    private static func rows(of group: Group, isCheck: Bool, _ peers: String? = nil) throws -> [Row] {
        let text = try Program.run(["group", group.rawValue, isCheck ? "check" : "full"] + [peers].compactMap(\.self))
        return try JSONDecoder().decode([Row].self, from: Data(text.utf8))
    }

    /// Runs the groups, each in a process of its own, and prints the table.
    private static func show(_ arguments: [String]) throws {
        if !Program.fixPlacement() {
            FileHandle.standardError.write(
                Data("SideBySide: Memory is placed at random here, so calls can take 1.3 times as long.\n".utf8))
        }
        var (arguments, json, peers) = (arguments[...], String?.none, String?.none)
        var groups: [Group] = []
        while let argument = arguments.popFirst() {
            switch argument {
            case "--json": json = arguments.popFirst()
            case "--peers": peers = arguments.popFirst()
            default:
                guard let group = Group(rawValue: argument) else {
                    throw Failure("There is no group \(argument). \(Group.allCases.map(\.rawValue))")
                }
                groups.append(group)
            }
        }
        var rows: [Row] = []
        for group in groups.isEmpty ? Group.allCases : groups {
            FileHandle.standardError.write(Data("measuring \(group) …\n".utf8))
            rows += try Self.rows(of: group, isCheck: false, peers)
        }
        let figures = try peers.map(Peer.read) ?? []
        rows = rows.completed { row in figures.compactMap { $0.figure(for: row) } }
        print(Table(rows: rows).text())
        if let json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            try encoder.encode(rows).write(to: URL(fileURLWithPath: json))
        }
    }
}
