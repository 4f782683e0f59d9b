import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Routes that match some of the same URLs, as a host lists them.
@Suite struct OverlapTests {
    @Test("routes that match some of the same URLs and are equally specific are shown with each other")
    func overlaps() throws {
        try withHost("ModuleA") { host throws in
            try host.addRoute("app://o/:a(\\d+)", to: "A/fetchDetail")
            try host.addRoute("app://o/:a([1-5]+)", to: "A/fetchDetail")
            try host.addRoute("app://o/:a([a-z]+)", to: "A/fetchDetail")
            let routes = Dictionary(uniqueKeysWithValues: host.routes.map { ($0.pattern, $0.overlaps) })
            #expect(routes["app://o/:a(\\d+)"] == ["app://o/:a([1-5]+)"])
            #expect(routes["app://o/:a([1-5]+)"] == ["app://o/:a(\\d+)"])
            #expect(routes["app://o/:a([a-z]+)"] == [])
        }
    }

    @Test("routes that the method distinguishes do not overlap")
    func methods() throws {
        try withHost("ModuleA") { host throws in
            try host.addRoute("app://o/:a(\\d+)", to: "A/fetchDetail", method: .get)
            try host.addRoute("app://o/:a([1-5]+)", to: "A/fetchDetail", method: .post)
            try host.addRoute("app://o/:a([2-6]+)", to: "A/fetchDetail")
            try host.addRoute("app://o/:a([3-7]+)", to: "A/fetchDetail", method: .post)
            let routes = Dictionary(uniqueKeysWithValues: host.routes.map { ($0.pattern, $0.overlaps) })
            #expect(routes["app://o/:a(\\d+)"] == [] && routes["app://o/:a([2-6]+)"] == [])
            #expect(routes["app://o/:a([1-5]+)"] == ["app://o/:a([3-7]+)"])
            #expect(routes["app://o/:a([3-7]+)"] == ["app://o/:a([1-5]+)"])
        }
    }

    @Test("the search for overlaps stays within its total bound, and routes that were not compared say so")
    func unfinishedOverlaps() throws {
        try withHost("ModuleA") { host throws in
            // The patterns differ at the beginning, and are compared from the end.
            for number in 0..<120 {
                try host.addRoute("app://o\(number / 4)/:a(\(number % 4)(?:[ab]{0,20}){0,20})", to: "A/fetchDetail")
            }
            try host.addRoute("app://other/:a", to: "A/fetchDetail")
            let routes = host.routes
            #expect(routes.contains { !$0.overlapsAreComplete } && routes.contains { $0.overlapsAreComplete })
            #expect(routes.first { $0.pattern == "app://other/:a" }?.overlapsAreComplete == true)
        }
    }

    @Test("routes that one segment distinguishes do not overlap, however many there are")
    func withoutOverlaps() throws {
        try withHost("ModuleA") { host throws in
            try host.addRoute("app://o/x-:a/b", to: "A/fetchDetail")
            try host.addRoute("app://o/:a/b", to: "A/fetchDetail")
            try host.addRoutes(
                (0..<5000).flatMap { number in
                    [
                        ("app://many/\(number)/:key", "A/fetchDetail"), ("app://more/:key/\(number)", "A/fetchDetail"),
                    ]
                })
            #expect(host.routes.allSatisfy { $0.overlaps.isEmpty })
        }
    }
}
