import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Random patterns and random URLs: nothing traps, no search takes more steps than registration allows, and all
/// interfaces agree on where a URL leads.
///
/// Runs for a second, or for `PLUGINHOST_STRESS_SECONDS`. `PLUGINHOST_STRESS_SEED` is the first seed, such as the one
/// that a failure has printed:
///
///     PLUGINHOST_STRESS_SECONDS=600 swift test --filter RoutingAttackTests
@Suite(.serialized) struct RoutingAttackTests {
    private static func setting(_ name: String) -> Double? {
        ProcessInfo.processInfo.environment["PLUGINHOST_STRESS_\(name)"].flatMap { Double($0) }
    }

    @Test func `No pattern and no URL takes longer than is allowed, and all interfaces agree on the result`() throws {
        let end = ContinuousClock.now + .seconds(Self.setting("SECONDS") ?? 1)
        var seed = Self.setting("SEED").map { UInt64($0) } ?? .random(in: 1...1_000_000)
        let first = seed
        var (accepted, refused, opened) = (0, 0, 0)
        repeat {
            var round = Round(seed: seed)
            do { try round.run() } catch { Issue.record("seed \(seed): \(error)") }
            (accepted, refused, opened) = (
                accepted + round.accepted, refused + round.refused, opened + round.opened
            )
            seed += 1
        } while ContinuousClock.now < end
        print(
            "Routing attack: seeds \(first) to \(seed - 1): \(accepted) patterns taken, \(refused) refused, "
                + "\(opened) of the URLs opened")
        #expect(accepted > 0)
    }
}

/// One table, and URLs for it.
private struct Round {
    let seed: UInt64
    private var generator: SplitMix
    private(set) var accepted = 0
    private(set) var refused = 0
    private(set) var opened = 0

    init(seed: UInt64) { (self.seed, generator) = (seed, SplitMix(seed: seed)) }

    mutating func run() throws {
        let most = [20_000_000, 2_000_000, SearchWork.most].randomElement(using: &generator)!
        var table = RouteTable(mostSteps: most)
        var entries: [RouteEntry] = []
        let host = PluginHost(.init(folders: []))
        try host.register(
            Manifest("M", version: "1.0.0") { Target("T") { Action("a", .optional("x", Int.self, default: 1)) { $0 } } }
        )
        defer { host.shutdown() }
        for _ in 0..<Int.random(in: 1...25, using: &generator) {
            let text = pattern()
            do throws(PluginError) {
                let pattern = try RoutePattern(text, scheme: "app")
                let entry = try RouteEntry(
                    pattern, to: "T/a", name: nil, summary: "", defaults: [:], owner: .program)
                guard table.insert(entry) == nil else {
                    refused += 1
                    continue
                }
                accepted += 1
                entries.append(entry)
                try host.addRoute(text, to: "T/a")
            } catch {
                refused += 1
                #expect([.invalidPattern, .conflict].contains(error.code), "seed \(seed): \(text): \(error)")
            }
        }
        if Bool.random(using: &generator), let entry = entries.randomElement(using: &generator) {
            table.remove(entry)
            // The steps depend on the depth of the maps of names, which varies slightly with the order of insertion.
            let conflict = table.insert(entry)
            if case .work(let steps, _)? = conflict {
                #expect(steps < most + most / 4, "seed \(seed): \(entry.pattern.text) is refused when added again")
                entries.removeAll { $0 === entry }
            } else {
                #expect(conflict == nil, "seed \(seed): \(entry.pattern.text) is refused when added again")
            }
        }
        for _ in 0..<30 { try open(url(), table, entries, host, most) }
        _ = host.routes
    }

    private mutating func open(
        _ text: String, _ table: RouteTable, _ entries: [RouteEntry], _ host: PluginHost, _ most: Int
    ) throws {
        var steps = 0
        do throws(PluginError) {
            let (found, matching) = try URLText.read(text, scheme: "app") { url in
                (
                    table.match(url, counting: &steps)?.entry.takeUnretainedValue(),
                    entries.filter { $0.pattern.path != nil && $0.pattern.match(url) != nil }
                )
            }
            #expect(steps <= most, "seed \(seed): \(text.prefix(100)) takes \(steps) steps")
            #expect((found == nil) == matching.isEmpty, "seed \(seed): \(text.prefix(100))")
            if let found {
                #expect(matching.contains { $0 === found }, "seed \(seed): \(text.prefix(100))")
                let alone = try URLPattern(found.pattern.text, scheme: "app").match(text)
                #expect(alone != nil, "seed \(seed): \(text.prefix(100))")
            }
        } catch {
            #expect(error.code == .invalidURL, "seed \(seed): \(text.prefix(100)): \(error)")
        }
        let canOpen = host.canOpen(text)
        let didOpen = (try? host.open(text)) != nil
        #expect(canOpen == didOpen, "seed \(seed): \(text.prefix(100))")
        if didOpen { opened += 1 }
    }

    // MARK: Texts

    private mutating func oneOf(_ choices: [String]) -> String { choices.randomElement(using: &generator)! }

    private mutating func pattern() -> String {
        let count = Int.random(in: 0...5, using: &generator)
        let text =
            oneOf(["a://h", "a://h", "a://h", "b://:s.h", "a://*", "a://(h|i)", "//h", "h", "a://", "//", ""])
            + (0..<count).map { segment($0) }.joined()
        guard Int.random(in: 0..<8, using: &generator) == 0 else { return text }
        return mutated(text)
    }

    private mutating func segment(_ number: Int) -> String {
        switch Int.random(in: 0..<9, using: &generator) {
        case 0: "/*"
        case 1: "/:n\(number)" + oneOf(["", "?", "+", "*"])
        case 2: "{/" + oneOf(["a", "b", "x-"]) + oneOf(["", ":o\(number)"]) + "}" + oneOf(["", "?", "+", "*"])
        case 3: "/" + oneOf(["a", "b-"]) + ":m\(number)" + oneOf(["", ".b", "-:k\(number)"])
        case 4, 5: "/:e\(number)(" + expression(0) + ")" + oneOf(["", "", "?", "+", "*"])
        case 6: "/(" + expression(0) + ")"
        default: "/" + oneOf(["a", "b", "ab", "", "%41", "é", "."])
        }
    }

    private mutating func expression(_ depth: Int) -> String {
        if depth > 3 { return oneOf(["a", "b", "[ab]", ".", "\\d"]) }
        switch Int.random(in: 0..<8, using: &generator) {
        case 0: return expression(depth + 1) + "|" + expression(depth + 1)
        case 1, 2: return expression(depth + 1) + expression(depth + 1)
        case 3: return "(?:" + expression(depth + 1) + ")" + repetition()
        case 4: return oneOf(["[^/]", "[a-f]", "[^a]", "[[a-z]--[b]]", "\\w", "\\u{e9}"]) + repetition()
        case 5: return "(?:" + oneOf(["", "a", "^", "$"]) + ")" + repetition()
        default: return oneOf(["a", "b", "ab", "[ab]", ".", "c"]) + repetition()
        }
    }

    private mutating func repetition() -> String {
        let (low, more) = (Int.random(in: 0...9, using: &generator), Int.random(in: 0...30, using: &generator))
        return oneOf(["", "", "*", "+", "?", "*?", "{\(low)}", "{\(low),}", "{\(low),\(low + more)}", "{\(more * 33)}"])
    }

    private mutating func url() -> String {
        let length = [0, 5, 40, 400, 4_000, 16_384].randomElement(using: &generator)!
        var text = oneOf(["a://h", "a://h", "a://h", "b://x.h", "A://i", "c://h", "h", "//h", ""])
        let piece = (0..<Int.random(in: 1...6, using: &generator)).map { _ in
            oneOf(["/", "/a", "a", "b", "ab", "/b-", "x-", ".", "..", "%2F", "%41", "é", "%C3%A9", "1", "c"])
        }.joined()
        text += "/" + String(repeating: piece, count: max(0, length - 10) / max(1, piece.utf8.count))
        text += oneOf(["", "", "/a", "b", "?x=1&x=2", "?" + String(repeating: "y=%20&", count: length / 12)])
        return Int.random(in: 0..<10, using: &generator) == 0 ? mutated(text) : text
    }

    /// The text with a few characters changed, inserted or removed.
    private mutating func mutated(_ text: String) -> String {
        var characters = Array(text.unicodeScalars)
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            let place = Int.random(in: 0...characters.count, using: &generator)
            if Bool.random(using: &generator), place < characters.count { characters.remove(at: place) }
            let other = oneOf([
                "(", ")", "{", "}", "[", "]", "%", ":", "*", "\\", "?", "\u{0}", "é", "/", "|", "^", "-",
            ])
            if Bool.random(using: &generator) {
                characters.insert(contentsOf: other.unicodeScalars, at: min(place, characters.count))
            }
        }
        var result = String.UnicodeScalarView()
        result.append(contentsOf: characters)
        return String(result)
    }
}
