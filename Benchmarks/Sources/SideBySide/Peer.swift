import Foundation

/// A figure of one of the programs in `Peers`.
struct Peer {
    let work: String
    let name: String
    let size: Int?
    let value: Double

    /// Lines of four fields with tabs between: work, name, size or `-`, value in the unit of the row.
    static func read(_ file: String) throws -> [Peer] {
        try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map { line in
            let fields = line.split(separator: "\t").map(String.init)
            guard fields.count == 4, let value = Double(fields[3]) else {
                throw Failure("“\(line)” in \(file) is no line of a peer: work, name, size, value.")
            }
            return Peer(work: fields[0], name: fields[1], size: Int(fields[2]), value: value)
        }
    }
}

/// What keeps the benchmarks from going on.
struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
