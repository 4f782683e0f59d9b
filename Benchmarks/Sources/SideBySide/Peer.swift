import Figures
import Foundation
import Work

/// A figure that one of the programs in `Peers` reports for work that can be done only once.
struct Peer {
    let work: String
    let name: String
    let size: Int?
    let value: Double

    /// Returns the figure for a row of the same work and size.
    func figure(for row: Row) -> Row.Other? {
        work == row.peer && (size == nil || size == row.size) ? Row.Other(name, value) : nil
    }

    /// Reads the lines of four tab-separated fields: work, name, size or `-`, value in the unit of the row.
    static func read(_ file: String) throws -> [Peer] {
        try lines(of: file).filter { $0[0] != "program" }.map { fields in
            guard fields.count == 4, let value = Double(fields[3]) else {
                throw Failure(
                    "“\(fields.joined(separator: " "))” in \(file) is not a line of a peer: work, name, size, value.")
            }
            return Peer(work: fields[0], name: fields[1], size: Int(fields[2]), value: value)
        }
    }

    fileprivate static func lines(of file: String) throws -> [[String]] {
        try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map { line in
            line.split(separator: "\t").map(String.init)
        }
    }
}

/// The programs in `Peers` that do work as often as requested, in turns with the library.
struct PeerPrograms {
    private var jobs: [(work: String, size: Int?, body: Work)] = []

    init() {}

    /// Starts the programs that a file names in lines `program PATH ARGUMENT …`, with tabs between the fields.
    init(_ file: String) throws {
        for fields in try Peer.lines(of: file) where fields[0] == "program" && fields.count > 1 {
            let program = try PeerProgram(fields[1], Array(fields.dropFirst(2)))
            for (number, job) in program.jobs.enumerated() {
                jobs.append((job.work, job.size, Work(job.name) { count in try program.run(number, count) }))
            }
        }
    }

    /// Returns the work of peers that is comparable to that of a row.
    func works(_ work: String?, _ size: Int?) -> [Work] {
        jobs.filter { $0.work == work && ($0.size == nil || $0.size == size) }.map(\.body)
    }
}

/// A program that lists the work that it can do, and does it on request. It ends when its input ends.
private final class PeerProgram {
    /// Lines of three fields: work, name, size or `-`.
    private(set) var jobs: [(work: String, name: String, size: Int?)] = []
    private let process = Process()
    private let input = Pipe()
    private let output: UnsafeMutablePointer<FILE>

    init(_ path: String, _ arguments: [String]) throws {
        let output = Pipe()
        guard let stream = fdopen(dup(output.fileHandleForReading.fileDescriptor), "r") else {
            throw Failure("No pipe can be created.")
        }
        self.output = stream
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        (process.standardInput, process.standardOutput) = (input, output)
        try process.run()
        while case let line = try line(), !line.isEmpty {
            let fields = line.split(separator: "\t").map(String.init)
            guard fields.count == 3 else { throw Failure("\(path) offers “\(line)”, not work, name and size.") }
            jobs.append((fields[0], fields[1], Int(fields[2])))
        }
    }

    /// Makes the program do a job, and waits until it is done. That adds a few microseconds.
    func run(_ job: Int, _ count: Int) throws {
        try input.fileHandleForWriting.write(contentsOf: Data("\(job) \(count)\n".utf8))
        _ = try line()
    }

    private func line() throws -> String {
        var text = [CChar](repeating: 0, count: 256)
        guard fgets(&text, Int32(text.count), output) != nil else {
            throw Failure("\(process.executableURL?.path ?? "A peer") has ended.")
        }
        return String(decoding: text.prefix { $0 != 0 && $0 != 10 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// The reason why the benchmarks cannot continue.
struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
