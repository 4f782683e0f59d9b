import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// The modules that subscribe to events, in a table that is derived from another one.
@Suite struct EventSubscribersTests {
    private static let events = ["e1", "e2", "e3"]

    /// A module that subscribes to some of the events; registered, if it has not started.
    private func module(_ number: Int, _ random: inout some RandomNumberGenerator) throws -> LoadedModule {
        var text = "m\(number).so M\(number) 1.0.0"
        for event in Self.events where Int.random(in: 0..<3, using: &random) > 0 {
            text += Int.random(in: 0..<8, using: &random) == 0 ? " async-event \(event)" : " event \(event)"
        }
        return try #require(PlanTests().record(text).module)
    }

    @Test(arguments: [3, 40], 1...10)
    func `Subscribers are the same after many changes as in a new table`(size: Int, seed: UInt64) throws {
        let host = PluginHost(.init(folders: []))
        defer { host.shutdown() }
        var random = SplitMix(seed: seed)
        var (table, generations, known) = (Table(), [Generation](), [LoadedModule]())
        for step in 0..<80 {
            for _ in 0...Int.random(in: 0..<2, using: &random) {
                let isFull = generations.count >= size
                switch Int.random(in: 0..<(isFull ? 8 : 4), using: &random) {
                case 0: known.append(try module(step, &random))
                case 1 where !known.isEmpty:
                    let place = Int.random(in: 0...generations.count, using: &random)
                    generations.insert(
                        Generation(known.removeFirst(), core: host.core, configuration: [:]), at: place)
                case 1...3:
                    let place = Int.random(in: 0...generations.count, using: &random)
                    let new = Generation(try module(step, &random), core: host.core, configuration: [:])
                    generations.insert(new, at: place)
                default: generations.remove(at: Int.random(in: 0..<generations.count, using: &random))
                }
            }
            let present = table.contents.known.changed(to: known)
            table = table.changed { ($0.generations, $0.known) = (generations, present) }
            let fresh = Table().changed { ($0.generations, $0.known) = (generations, present) }
            for event in Self.events {
                let subscribers = table.moduleSubscribers(of: event).map { ObjectIdentifier($0) }
                #expect(subscribers == fresh.moduleSubscribers(of: event).map { ObjectIdentifier($0) })
                #expect(subscribers == generations.compactMap { $0.subscriptions[event].map { ObjectIdentifier($0) } })
                let synchronous = [table, fresh].map { table in
                    event.withPluginString { table.subscribers(of: $0)?.takeUnretainedValue().areSynchronous }
                }
                #expect(synchronous[0] == synchronous[1])
            }
        }
    }
}
