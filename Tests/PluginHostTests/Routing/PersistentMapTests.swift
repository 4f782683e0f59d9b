import Foundation
import Testing

@testable import PluginHost
@testable import TestSupport

@Suite struct PersistentMapTests {
    final class Number {
        let value: Int
        init(_ value: Int) { self.value = value }
    }

    private func set(_ map: inout PersistentMap<Unmanaged<Number>>, _ key: String, _ value: Int?) {
        Array(key.utf8).withUnsafeBufferPointer { map.update($0) { $0 = value.map(Number.init) } }
    }

    private func contents(_ map: borrowing PersistentMap<Unmanaged<Number>>, _ keys: [String]) -> [String: Int] {
        var contents: [String: Int] = [:]
        for key in keys {
            let found = Array(key.utf8).withUnsafeBufferPointer { map.find($0)?.takeUnretainedValue().value }
            if let found { contents[key] = found }
        }
        return contents
    }

    @Test("A map has the entries of a dictionary, and a copy keeps its own")
    func agreesWithDictionary() {
        // Keys around the lengths at which a text no longer fits into its slot, and some that differ in only one byte.
        let long = String(repeating: "x", count: 30)
        let keys =
            (0...40).map { String(long.prefix($0)) + String(repeating: "y", count: max(0, $0 - 30)) }
            + (0..<30).map { "\(long.prefix($0))!\(long.dropFirst($0 + 1))" } + (0..<300).map { "r\($0)" }
            + ["", "\0", "\0\0", "a\0", "a", "ä", "a\u{308}"]
        var map = PersistentMap<Unmanaged<Number>>()
        var model: [String: Int] = [:]
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SplitMix(seed: seed)
        // Swift's == treats some texts of different bytes as equal; a map of bytes does not.
        let distinct = keys.filter { $0 != "ä" }
        for round in 0..<40 {
            let copy = PersistentMap(copying: map)
            let before = model
            for step in 0..<100 {
                let key = distinct.randomElement(using: &generator)!
                let value = Int.random(in: 0..<3, using: &generator) == 0 ? nil : round * 100 + step
                set(&map, key, value)
                model[key] = value
            }
            #expect(contents(map, distinct) == model, "seed \(seed)")
            #expect(map.count == model.count)
            #expect(contents(copy, distinct) == before)
            var visited: [Int] = []
            map.visit { visited.append($0.value) }
            #expect(visited.sorted() == model.values.sorted())
        }
    }

    @Test("Keys are compared by bytes, not by characters")
    func bytes() {
        var map = PersistentMap<Unmanaged<Number>>()
        set(&map, "\u{E4}", 1)
        set(&map, "a\u{308}", 2)
        set(&map, "\0", 3)
        set(&map, "", 4)
        #expect(map.count == 4)
        for (key, value) in [("\u{E4}", 1), ("a\u{308}", 2), ("\0", 3), ("", 4)] {
            #expect(contents(map, [key])[key] == value)
        }
    }

    @Test(
        "Typical names are spread over all pages",
        arguments: [
            "item%03d", "item-%03d", "page%04d", "shelf%d", "%03d", "%d-item", "settings-of-%03d",
            "product-category-%04d",
            "account-settings-%03d", "a-very-long-name-of-a-page-%d", "%05d-and-what-follows-behind-it",
        ])
    func spreads(_ format: String) {
        var pages = [Int](repeating: 0, count: 128)
        for number in 0..<1000 {
            Array(String(format: format, number).utf8).withUnsafeBufferPointer {
                pages[TextKey($0).pageIndex(among: pages.count)] += 1
            }
        }
        // The average is eight; of a thousand random names, 24 share a page only once in tens of thousands of pages.
        #expect(pages.max()! <= 24)
    }

    @Test("An entry that no map contains any more is freed")
    func frees() {
        weak var gone: Number?
        weak var kept: Number?
        do {
            var map = PersistentMap<Unmanaged<Number>>()
            for index in 0..<100 { set(&map, "key \(index) of some length", index) }
            let copy = PersistentMap(copying: map)
            "key 7 of some length".utf8.withContiguousStorageIfAvailable { key in
                kept = map.find(key)?.takeUnretainedValue()
                map.update(key) { $0 = nil }
                #expect(copy.find(key)?.takeUnretainedValue() === kept)
                gone = copy.find(key)?.takeUnretainedValue()
            }
            #expect(gone != nil)
        }
        #expect(gone == nil)
        #expect(kept == nil)
    }
}
