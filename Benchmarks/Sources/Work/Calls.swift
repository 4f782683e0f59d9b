import Figures
import PluginABI
import PluginHost

// Calls by target and action.

extension Comparison {
    /// A text that a Swift string does not store inline.
    static let text = "A text that is long enough to have no place in the sixteen bytes of a Swift string."
    static let word = "word"

    /// - Parameter sizes: How many actions are registered.
    public static func calls(_ sizes: [Int]) throws -> [Comparison] {
        try sizes.flatMap { size in
            let host = try PluginHost.bench(actions: size)
            let closures = closures(size)
            return [
                ready(host, size, closures), made(host, size, closures), oneInteger(host, size), bound(host, size),
            ]
        } + [fromModuleToModule()]
    }

    private static func ready(_ host: PluginHost, _ size: Int, _ closures: Closures) -> Comparison {
        let parameters: Parameters = ["text": .string(text), "n": 7, "word": .string(word)]
        return Comparison(
            "call, three parameters ready made", size: size, peer: "named3",
            goal: Goal(atMost: 75, below: "Qt invokeMethod"), floors: [pointer3, dictionary(closures)]
        ) { count in
            var sum = 0
            for _ in 0..<count { sum &+= try host.perform("Bench", "three", parameters).int ?? 0 }
            keep(sum)
        }
    }

    private static func made(_ host: PluginHost, _ size: Int, _ closures: Closures) -> Comparison {
        Comparison(
            "call, three parameters made for it", size: size, peer: "named3", goal: Goal(atMost: 130),
            floors: [pointer3, dictionary(closures)]
        ) { count in
            var sum = 0
            for n in 0..<count {
                sum &+=
                    try host.perform("Bench", "three", ["text": .string(text), "n": .int(n), "word": .string(word)])
                    .int ?? 0
            }
            keep(sum)
        }
    }

    private static func oneInteger(_ host: PluginHost, _ size: Int) -> Comparison {
        let parameters: Parameters = ["n": 7]
        return Comparison("call, one int ready made", size: size, peer: "named1", floors: [pointer1]) { count in
            var sum = 0
            for _ in 0..<count { sum &+= try host.perform("Bench", "one", parameters).int ?? 0 }
            keep(sum)
        }
    }

    /// An action that is found once, then called without its name.
    private static func bound(_ host: PluginHost, _ size: Int) -> Comparison {
        let one = host.bind("Bench", "one")
        return Comparison(
            "bound action, one int in, one int out", size: size, peer: "bound", goal: Goal(below: "Qt QMetaMethod"),
            floors: [pointer1]
        ) { count in
            var sum = 0
            for n in 0..<count {
                let result: Int = try one(n)
                sum &+= result
            }
            keep(sum)
        }
    }

    /// A call from one module to another, compared with the same call from the program.
    private static func fromModuleToModule() throws -> Comparison {
        let host = try PluginHost.bench()
        let parameters: Parameters = ["text": .string(text), "n": 7, "word": .string(word)]
        let fromProgram = Work("from the program") { count in
            var sum = 0
            for _ in 0..<count { sum &+= try host.perform("Bench", "three", parameters).int ?? 0 }
            keep(sum)
        }
        return Comparison("call from module to module, three ready", goal: Goal(timesFloor: 1.1), floors: [fromProgram])
        {
            count in keep(try host.perform("Caller", "callBench", ["count": .int(count)]).int ?? 0)
        }
    }

    // MARK: Floors

    private static var pointer1: Work {
        let one = Opened.one
        return Work("C pointer") { count in
            var sum = 0
            for n in 0..<count { sum &+= one(n) }
            keep(sum)
        }
    }

    private static var pointer3: Work {
        let three = Opened.three
        return Work("C pointer") { count in
            var (sum, text, word) = (0, text, word)
            text.withUTF8 { text in
                word.withUTF8 { word in
                    for n in 0..<count {
                        sum &+= three(text.baseAddress!, text.count, n, word.baseAddress!, word.count)
                    }
                }
            }
            keep(sum)
        }
    }

    typealias Closures = [String: ([String: Value]) -> Value]

    /// What a program without a host would do: closures by name, in one binary, that take a dictionary.
    private static func closures(_ count: Int) -> Closures {
        var closures: Closures = [:]
        for number in 0..<count { closures["Filler\(number / 10)/action\(number)"] = { _ in .int(number) } }
        closures["Bench/three"] = { parameters in
            let (text, word) = (parameters["text"]?.string ?? "", parameters["word"]?.string ?? "")
            return .int(text.utf8.count &+ (parameters["n"]?.int ?? 0) &+ word.utf8.count)
        }
        return closures
    }

    private static func dictionary(_ closures: Closures) -> Work {
        let parameters: [String: Value] = ["text": .string(text), "n": 7, "word": .string(word)]
        return Work("dictionary of closures") { count in
            var sum = 0
            for _ in 0..<count { sum &+= closures["Bench/three"]!(parameters).int ?? 0 }
            keep(sum)
        }
    }
}
