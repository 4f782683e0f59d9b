import Foundation
import PluginABI
import PluginHost
import Synchronization

@testable import TestSupport

/// Calls modules without pause, in every possible way, and checks each answer.
final class StressCaller: @unchecked Sendable {  // Used by one thread or task at a time.
    private let round: StressRound
    private let progress: StressRound.Progress
    private var random: SplitMix
    private var bound: [BoundAction]
    /// Objects that are kept for a while, with their modules and the version that made them.
    private var objects: [(object: Object, place: Int, number: Int)] = []
    private var posted = 0
    private let number: Int
    private var host: PluginHost { round.host }

    init(_ round: StressRound, _ number: Int) {
        self.round = round
        self.number = number
        progress = round.progress[number]
        random = SplitMix(seed: round.seed &+ UInt64(number) &* 7919)
        bound = (0..<StressRound.places).map { round.host.bind(StressModule.name($0), "answer") }
    }

    /// Runs calls that block the thread.
    func run() {
        while !round.isOver {
            let n = Int(random.next() % 1_000_000)
            let place = Int(random.next() % UInt64(StressRound.places))
            let name = StressModule.name(place)
            switch random.next() % 16 {
            case 0..<4: check("by name", place, n) { try self.host.perform(name, "answer", [.int(n)]) }
            case 4..<8: check("bound", place, n) { try self.bound[place](n) }
            case 8: check("service", place, n) { try self.host.service("\(name)Service").perform("answer", [.int(n)]) }
            case 9: useObject(place, n)
            case 10: callBack(place, n)
            case 11: relay(place, n)
            case 12: post(place)
            case 13: check("slow", place, Int(n % 500)) { try self.host.perform(name, "slow", [.int(n % 500)]) }
            default: count()
            }
            progress.calls.add(1, ordering: .relaxed)
        }
        objects = []
        progress.isOver.store(true, ordering: .relaxed)
    }

    /// Runs calls that never block the thread.
    func runInTask() async {
        while !round.isOver {
            let n = Int(random.next() % 1_000_000)
            let place = Int(random.next() % UInt64(StressRound.places))
            let name = StressModule.name(place)
            let host = host
            switch random.next() % 4 {
            case 0: await checkLater("asynchronous", place, n) { try await host.call(name, "later", [.int(n)]) }
            case 1: await checkLater("URL", place, n) { try await host.open("app://stress/\(name)/\(n)") }
            case 2: await countLater()
            default: await checkLater("by name in a task", place, n) { try await host.call(name, "answer", [.int(n)]) }
            }
            progress.calls.add(1, ordering: .relaxed)
            if random.next() % 64 == 0 { await Task.yield() }
        }
        progress.isOver.store(true, ordering: .relaxed)
    }

    // MARK: Valid answers

    private func check(_ way: String, _ place: Int, _ n: Int, _ body: () throws -> Value) {
        let begin = begin(way, place)
        judge(way, place, n, since: begin, Result(catching: body))
    }

    private func checkLater(
        _ way: String, _ place: Int, _ n: Int, _ body: @Sendable () async throws -> Value
    ) async {
        let begin = begin(way, place)
        let result: Result<Value, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        judge(way, place, n, since: begin, result)
    }

    private func begin(_ way: String, _ place: Int) -> Int {
        progress.doing.withLock { $0 = "\(way) of \(StressModule.name(place))" }
        return round.model.now
    }

    private func judge(_ way: String, _ place: Int, _ n: Int, since begin: Int, _ result: Result<Value, any Error>) {
        switch result {
        case .success(let value):
            guard let text = value.string,
                let number = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) }),
                text == StressModule.answer(place, number, n)
            else { return report(way, place, "answered \(value) to \(n)") }
            guard round.model.isAllowed(number, of: place, since: begin) else {
                return report(way, place, "answered \(text), but \(round.model.allowed(place)) is there")
            }
        case .failure(let error): judge(way, place, since: begin, error)
        }
    }

    private static let absences: Set<PluginError.Code> = [
        .moduleUnavailable, .unknownTarget, .unknownService, .invalidURL,
    ]

    private func judge(_ way: String, _ place: Int, since begin: Int, _ error: any Error) {
        guard let error = error as? PluginError, Self.absences.contains(error.code),
            round.model.isAllowed(0, of: place, since: begin)
        else { return report(way, place, "failed: \(error); \(round.model.allowed(place)) is there") }
    }

    private func report(_ way: String, _ place: Int, _ what: String) {
        round.report("caller \(number), \(way), \(StressModule.name(place)): \(what)")
    }

    // MARK: Calls with several steps

    /// Makes an object, or calls an earlier one, which always answers as the version that made it.
    private func useObject(_ place: Int, _ n: Int) {
        if objects.count > 2, random.next() % 2 == 0 {
            let kept = objects.randomElement(using: &random)!
            _ = begin("kept object", kept.place)
            do {
                let answer = try kept.object.perform("get", [.int(n)])
                guard answer == .string(StressModule.answer(kept.place, kept.number, n)) else {
                    return report("kept object of \(kept.number)", kept.place, "answered \(answer)")
                }
            } catch { report("kept object", kept.place, "failed: \(error)") }
            return
        }
        let begin = begin("object", place)
        do {
            guard let object = try host.perform(StressModule.name(place), "make").object else {
                return report("object", place, "is none")
            }
            let answer = try object.perform("get", [.int(n)])
            judge("object", place, n, since: begin, .success(answer))
            guard let number = answer.string?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
                return
            }
            if objects.count > 3 { objects.remove(at: Int(random.next() % UInt64(objects.count))) }
            objects.append((object, place, number))
        } catch { judge("object", place, since: begin, error) }
    }

    /// Lets a module call a callback, which calls the module again.
    private func callBack(_ place: Int, _ n: Int) {
        let (host, name) = (host, StressModule.name(place))
        check("callback", place, n) {
            let callback = host.callback { arguments in try host.perform(name, "answer", [arguments[0]]) }
            return try host.perform(name, "back", [.object(callback.object), .int(n)])
        }
    }

    /// Lets a module call another one.
    private func relay(_ place: Int, _ n: Int) {
        let through = Int(random.next() % UInt64(StressRound.places))
        let begin = begin("relay through \(StressModule.name(through))", place)
        let result = Result { () throws -> Value in
            try self.host.perform(
                StressModule.name(through), "relay", [.string(StressModule.name(place)), .int(n)])
        }
        if case .failure = result, round.model.isAllowed(0, of: through, since: begin) { return }
        judge("relay through \(StressModule.name(through))", place, n, since: begin, result)
    }

    /// Posts an event, which each present module receives once.
    private func post(_ place: Int) {
        let begin = begin("event", place)
        posted += 1
        let event = number * 1_000_000_000 + posted
        do {
            let outcome = try host.post("stress.event", ["n": .int(event)])
            if let failure = outcome.failures.first { report("event", place, "failed: \(failure)") }
        } catch { report("event", place, "failed: \(error)") }
        let heard = round.listener.take(event)
        for place in 0..<StressRound.places {
            let count = heard.count { $0 == StressModule.name(place) }
            if count > 1 || (count == 0 && !round.model.isAllowed(0, of: place, since: begin)) {
                report("event", place, "got it \(count) times")
            }
        }
    }

    /// Calls the module that hands over its state: no count is lost or returned twice.
    private func count() {
        let begin = begin("count", StressRound.counter)
        do {
            _ = try host.perform(StressModule.name(StressRound.counter), "count")
            round.counted.add(1, ordering: .sequentiallyConsistent)
        } catch { judge("count", StressRound.counter, since: begin, error) }
    }

    private func countLater() async {
        let begin = begin("count in a task", StressRound.counter)
        do {
            _ = try await host.call(StressModule.name(StressRound.counter), "count")
            round.counted.add(1, ordering: .sequentiallyConsistent)
        } catch { judge("count in a task", StressRound.counter, since: begin, error) }
    }
}
