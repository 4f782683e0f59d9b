import ArgumentParser
import Foundation
import PluginABI
import PluginHost

/// An object in a configuration file.
struct ConfigurationNode {
    /// A file that is being read.
    struct File {
        let path: String
        let positions: JSONPositions

        /// Relative paths in the file start at its folder.
        func resolve(_ path: String) -> String {
            path.hasPrefix("/") ? path : URL(filePath: self.path).deletingLastPathComponent().path + "/" + path
        }
    }

    private let file: File
    private let path: [String]
    private let entries: [String: Value]

    /// - Parameters:
    ///   - names: The names that the object can have.
    /// - Throws: An error for an unknown name, and for a value that is not an object.
    init(_ value: Value, at path: [String] = [], in file: File, _ names: [String]) throws {
        (self.file, self.path) = (file, path)
        entries = value.map ?? [:]
        guard value.map != nil else { throw error([], "This must be an object: { … }.") }
        for name in entries.keys.sorted() where !names.contains(name) {
            let what = path.isEmpty ? "" : " in “\(path.joined(separator: "."))”"
            let hint = Self.nearest(name, names).map { " Did you mean “\($0)”?" } ?? ""
            throw error([name], "There is no setting “\(name)”\(what).\(hint)")
        }
    }

    /// Returns an error with the position of a member.
    func error(_ path: [String], _ message: String) -> ValidationError {
        let position = file.positions[self.path + path]
        return ValidationError("\(file.path):\(position.line):\(position.column): \(message)")
    }

    // MARK: Values

    private func read<Result>(_ name: String, _ expected: String, _ read: (Value) -> Result?) throws -> Result? {
        guard let value = entries[name] else { return nil }
        guard let result = read(value) else { throw error([name], "“\(name)” must be \(expected).") }
        return result
    }

    func text(_ name: String) throws -> String? {
        try read(name, "a text that is not empty") { $0.string.flatMap { $0.isEmpty ? nil : $0 } }
    }

    func bool(_ name: String) throws -> Bool? { try read(name, "true or false") { $0.bool } }

    func texts(_ name: String) throws -> [String]? {
        try read(name, "a list of texts that are not empty") { value in
            let texts = value.list?.map { $0.string ?? "" }
            return texts?.contains("") == true ? nil : texts
        }
    }

    func path(_ name: String) throws -> String? { try text(name).map(file.resolve) }

    func paths(_ name: String) throws -> [String]? { try texts(name)?.map(file.resolve) }

    func number(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
        try read(name, "a whole number from \(range.lowerBound) to \(range.upperBound)") { value in
            value.int.flatMap { range.contains($0) ? $0 : nil }
        }
    }

    /// Reads a number of seconds.
    func seconds(_ name: String, in range: ClosedRange<Double> = ServeSettings.times) throws -> Double? {
        let (least, most) = (Value.double(range.lowerBound).json, Int(range.upperBound))
        return try read(name, "a number of seconds, \(least) to \(most)") { value in
            let seconds = value.double ?? value.int.map(Double.init) ?? -1
            return range.contains(seconds) ? seconds : nil
        }
    }

    /// Reads an object that can have any names.
    func map(_ name: String) throws -> [String: Value]? { try read(name, "an object: { … }") { $0.map } }

    func value(_ name: String) -> Value? { entries[name] }

    func node(_ name: String, _ names: [String]) throws -> ConfigurationNode? {
        try entries[name].map { try ConfigurationNode($0, at: path + [name], in: file, names) }
    }

    /// Reads a list of objects; empty if there is none.
    func nodes(_ name: String, _ names: [String]) throws -> [ConfigurationNode] {
        let list = try read(name, "a list of objects: [{ … }]") { $0.list } ?? []
        return try list.enumerated().map { number, value in
            try ConfigurationNode(value, at: path + [name, String(number)], in: file, names)
        }
    }

    /// Reads rules. The errors of `make` get their positions in the file.
    func rules<Rule>(_ name: String, _ make: (Value) throws(PluginError) -> Rule) throws -> [Rule]? {
        try read(name, "a list of rules") { $0.list }?.enumerated().map { number, value in
            do throws(PluginError) { return try make(value) } catch {
                throw self.error([name, String(number)], error.message)
            }
        }
    }

    // MARK: Suggestions

    /// Returns the name that differs least; `nil` if more than a third of its letters differ.
    private static func nearest(_ name: String, _ names: [String]) -> String? {
        let ranked = names.map {
            (name: $0, distance: distance(Array(name.prefix(64).lowercased()), Array($0.lowercased())))
        }
        let best = ranked.min { ($0.distance, $0.name) < ($1.distance, $1.name) }
        return best.flatMap { $0.distance <= max(1, $0.name.count / 3) ? $0.name : nil }
    }

    /// Returns how many letters must be changed, added or removed.
    private static func distance(_ left: [Character], _ right: [Character]) -> Int {
        var row = Array(0...right.count)
        for (i, letter) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, other) in right.enumerated() {
                let change = diagonal + (letter == other ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(change, row[j] + 1, row[j + 1] + 1)
            }
        }
        return row[right.count]
    }
}
