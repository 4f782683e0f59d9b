import Figures
public import PluginABI
import PluginHost

/// The form of the patterns of many routes.
public enum RouteShape: String, Sendable {
    /// Their first segments differ.
    case oneLevel = "on one level"
    /// A tree: ten to a hundred branches at each of three levels.
    case nested

    public func path(_ number: Int) -> String {
        switch self {
        case .oneLevel: "app://shop/item\(number)"
        case .nested: "app://shop/area\(number / 1000)/shelf\(number / 10 % 100)/item\(number)"
        }
    }

    /// The goal of opening a URL among `size` routes.
    func goal(_ size: Int) -> Goal {
        switch self {
        case .oneLevel: Goal(atMost: size <= 10 ? 250 : 300)
        case .nested: Goal(atMost: 350)
        }
    }
}

extension Comparison {
    /// URLs with one path parameter and two query items, drawn evenly from all routes.
    ///
    /// - Parameter sizes: How many routes there are.
    public static func urls(_ sizes: [Int]) throws -> [Comparison] {
        try [RouteShape.oneLevel, .nested].flatMap { shape in
            try sizes.map { size in
                let host = try PluginHost.bench()
                try host.register(routes(size, shape, target: "URLs"))
                var generator = Repeatable()
                let urls = (0..<max(size, 1000)).map { "\(shape.path($0 % size))/42?q=lamp&r=small" }
                    .shuffled(using: &generator)
                return Comparison(
                    "open a URL, routes \(shape.rawValue)", size: size, goal: shape.goal(size),
                    floors: [dictionary(urls)]
                ) { count in
                    var (sum, next) = (0, 0)
                    for _ in 0..<count {
                        sum &+= try host.open(urls[next]).int ?? 0
                        next = next + 1 == urls.count ? 0 : next + 1
                    }
                    keep(sum)
                }
            }
        }
    }

    /// Returns a module with the given number of routes.
    public static func routes(_ count: Int, _ shape: RouteShape, target: String) -> Manifest {
        Manifest(target, version: "1.0.0") {
            Target(target) {
                Action(
                    "open", .required("id", String.self), .required("q", String.self), .required("r", String.self)
                ) { id, q, r in id.utf8.count &+ q.utf8.count &+ r.utf8.count }
            }
            for number in 0..<count { Route("\(shape.path(number))/:id", to: "\(target)/open") }
        }
    }

    /// Finding each whole URL in a dictionary: no pattern, no parameter, no call.
    private static func dictionary(_ urls: [String]) -> Work {
        let known = Dictionary(urls.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        return Work("dictionary of whole URLs") { count in
            var (sum, next) = (0, 0)
            for _ in 0..<count {
                sum &+= known[urls[next]] ?? 0
                next = next + 1 == urls.count ? 0 : next + 1
            }
            keep(sum)
        }
    }
}

/// Random numbers that are the same in each run (SplitMix64).
struct Repeatable: RandomNumberGenerator {
    private var state: UInt64 = 42

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
