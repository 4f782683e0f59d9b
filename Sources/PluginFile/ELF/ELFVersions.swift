import PluginABI

/// The versions of symbols: those that the file defines, those that it requires of other libraries, and the version of
/// each of its symbols.
enum ELFVersions {
    /// Checks the three tables by following them as the dynamic linker will. Takes linear time, because each list only
    /// goes forward in the file.
    static func check(_ dynamic: ELFDynamic, needed: [String], symbolCount: UInt64) throws(PluginError) {
        let file = dynamic.file
        var largest: UInt16 = 1
        if let start = dynamic[.definitions] {
            for at in try list(dynamic, start, count: dynamic[.definitionCount], size: 20, next: 16) {
                try file.check(
                    file.read(UInt16.self, at: at) == 1, else: "a version definition has an unknown format")
                largest = max(largest, try file.read(UInt16.self, at: at + 4) & 0x7fff)
                let name = try file.word(at: at + file.word(at: at + 12))
                try file.check(
                    name < dynamic.strings.size, else: "the name of a version is outside the string table")
            }
        }
        if let start = dynamic[.requirements] {
            var budget = file.count / 16  // The file cannot contain more requirements, unless lists share them.
            let needed = Set(paths: needed)
            let records = try list(dynamic, start, count: dynamic[.requirementCount], size: 16, next: 12)
            // Linkers make one record for each library. The limit bounds the number of names that are read.
            try file.check(
                records.count <= needed.count,
                else: "it requires versions of \(records.count) libraries, but needs only \(needed.count)")
            for at in records {
                try file.check(
                    file.read(UInt16.self, at: at) == 1, else: "a version requirement has an unknown format")
                let library = try dynamic.name(at: file.word(at: at + 4))
                try file.check(
                    needed.contains(library),
                    else: "it requires versions of \(library), but does not need that library")
                largest = max(largest, try checkRequirements(dynamic, record: at, &budget))
            }
        }
        guard let address = dynamic[.versions] else { return }
        let table = try dynamic.table(.versions, at: address, size: saturating(symbolCount, times: 2))
        let versions = file.table(table.offset, table.size)
        for index in 0..<symbolCount {
            let version = try versions.read(UInt16.self, at: table.offset + index * 2) & 0x7fff
            try file.check(
                version <= largest, else: "symbol \(index) has version \(version), but there are only \(largest)")
        }
    }

    /// Returns the offsets of the records of a list in which each record contains the distance to the next one, or 0 at
    /// the end.
    private static func list(
        _ dynamic: ELFDynamic, _ address: UInt64, count: UInt64?, size: UInt64, next: UInt64
    ) throws(PluginError) -> [UInt64] {
        let start = try dynamic.table(.versions, at: address, size: size).offset
        let end = start + dynamic.segments.bytesInFile(from: address)
        var offsets = [start]
        while true {
            let at = offsets[offsets.count - 1]
            let step = try dynamic.file.word(at: at + next)
            if step == 0 { break }
            try dynamic.file.check(
                step >= size && at + step + size <= end, else: "a list of symbol versions leads outside of its table")
            offsets.append(at + step)
        }
        try dynamic.file.check(
            count == nil || count == UInt64(offsets.count),
            else: "a list of symbol versions has \(offsets.count) entries, not \(count ?? 0)")
        return offsets
    }

    /// Checks the requirements of one library, and returns the largest version number in them.
    private static func checkRequirements(
        _ dynamic: ELFDynamic, record: UInt64, _ budget: inout UInt64
    ) throws(PluginError) -> UInt16 {
        let file = dynamic.file
        let count = try file.read(UInt16.self, at: record + 2)
        let room = budget
        try file.check(count > 0 && count <= room, else: "a list of required symbol versions is broken")
        budget -= UInt64(count)
        var at = record + (try file.word(at: record + 8))
        var largest: UInt16 = 0
        for index in 0..<count {
            let (name, step) = (try file.word(at: at + 8), try file.word(at: at + 12))
            try file.check(
                name < dynamic.strings.size && (step >= 16 || (step == 0 && index + 1 == count)),
                else: "a list of required symbol versions is broken")
            largest = max(largest, try file.read(UInt16.self, at: at + 6) & 0x7fff)
            try file.check(
                index + 1 < count || step == 0, else: "a list of required symbol versions is not terminated")
            at += step
        }
        return largest
    }
}
