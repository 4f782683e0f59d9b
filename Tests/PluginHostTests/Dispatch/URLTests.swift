import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// `scheme://target/action?name=value`.
@Suite struct URLTests {
    let test: TestHost
    var host: PluginHost { test.host }

    init() throws { test = try TestHost.withSamples() }

    private func failure(_ url: String, _ origin: CallOrigin = .local) throws -> PluginError {
        try #require(#expect(throws: PluginError.self, "\(url)") { try self.host.open(url, origin: origin) })
    }

    private func echo(_ query: String) throws -> Value { try host.open("app://Echo/any?value=\(query)") }

    @Test func `A URL addresses an action and carries its parameters`() throws {
        #expect(try host.open("app://A/fetchDetail?key=42&page=3") == ["title": "Detail of 42", "page": 3])
        #expect(try host.open("app://Echo/nothing") == nil)
        #expect(try host.open("app://Echo/nothing?") == nil)
    }

    @Test func `A URL of an asynchronous action is awaited`() async throws {
        #expect(try await host.open("app://B/slowly?text=abc&milliseconds=1") == "cba")
        let error = #expect(throws: PluginError.self) { try (host.open("app://B/slowly?text=abc") as Value) }
        #expect(error?.code == .asynchronousAction)
    }

    @Test func `Values are decoded once`() throws {
        let cases: [(String, String)] = [
            ("a%20b", "a b"), ("a+b", "a b"), ("a%2Bb", "a+b"), ("%2520", "%20"), ("%E6%BC%A2", "漢"), ("漢", "漢"),
            ("a%2Fb", "a/b"), ("%00", "\0"), ("", ""), ("a=b", "a=b"), ("a?b", "a?b"), ("a/b", "a/b"),
            ("a:b@c", "a:b@c"),
            ("x#y", "x"), ("%26", "&"), ("%e6%bc%a2", "漢"),
            ("http%3A%2F%2Fe.org%2F%3Fa%3Db%26c", "http://e.org/?a=b&c"),
        ]
        for (query, value) in cases {
            #expect(try echo(query) == .string(value))
        }
    }

    @Test func `Names of targets, actions and parameters are decoded, and a plus in the path stays a plus`() throws {
        #expect(try host.open("app://%45cho/%61ny?v%61lue=1") == "1")
        #expect(try failure("app://Echo/an+y").message.contains("“an+y”"))
        #expect(try failure("app://A%2FB/any").message.contains("“A/B”"))
        #expect(try failure("app://Echo/any%00?value=1").code == .unknownAction)
    }

    @Test func `An invalid escape is an error with its position`() throws {
        let cases: [(String, Int)] = [
            ("app://Echo/any?value=%", 21), ("app://Echo/any?value=%4", 21), ("app://Echo/any?value=a%zz", 22),
            ("app://Echo/any?value=%%41", 21), ("app://Ec%xo/any", 8), ("app://Echo/any?val%ue=1", 18),
            ("app://Echo/any?value=%4#1", 21),
        ]
        for (url, position) in cases {
            let error = try failure(url)
            #expect(error.code == .invalidURL && error.message.contains("at byte \(position) "))
        }
    }

    @Test func `Text that does not decode to UTF-8 is an error`() throws {
        for query in ["%FF", "%C0%80", "%ED%A0%80", "%E6%BC"] {
            #expect(try failure("app://Echo/any?value=\(query)").code == .invalidURL)
        }
    }

    @Test func `A byte that is no UTF-8 is an error with its own position`() throws {
        let cases: [(String, Int)] = [
            ("app://Echo/any?value=%FF", 21), ("app://Echo/any?value=abc%FF", 24), ("app://Echo/any?value=%C0%80", 21),
            ("app://Echo/any?value=%20%E6%BC%A2x%ED%A0%80", 34), ("app://Echo/any?a=1&value=x%E6%BC", 26),
            ("app://Echo/x%2Fy%E6%BC%A2%C3%28", 25), ("app://E%FEho/any", 7), ("app://Echo/any?v%C3lue=1", 16),
            ("app://Echo/%2F%FF", 14),
        ]
        for (url, position) in cases {
            let error = try failure(url)
            #expect(error.code == .invalidURL && error.message.contains("from byte \(position) on"), "\(error.message)")
        }
    }

    @Test func `An escaped slash in the place of the action is a slash in the name that notFound gets`() throws {
        #expect(try host.open("app://Lost/a%2Fb%2fc")["action"] == "a/b/c")
        #expect(try failure("app://A/b%2Fc", .remote).message.contains("\u{FFFD}") == false)
    }

    @Test func `Text that is not a URL of that form is an error`() throws {
        let cases: [String] = [
            "", "A", "app:", "app:/", "app://", "app:///", "app://A", "app://A/", "app:///fetchDetail", "app://A/b/c",
            "app://A/b/", "://A/b", "A/b/c", "/A/fetchDetail", "app:A/b", "other://A/fetchDetail", "app://A?key=1",
            "app://#A/b",
            "app://Echo/any?=1", " app://Echo/any",
        ]
        for url in cases {
            #expect(try failure(url).code == .invalidURL)
        }
    }

    @Test func `The scheme is case-insensitive, and the target is case-sensitive`() throws {
        #expect(try host.open("APP://Echo/any?value=1") == "1")
        #expect(try failure("app://echo/any?value=1").code == .unknownTarget)
    }

    @Test func `The schemes are those that the program configures`() throws {
        let other = try TestHost([built("libFixtureModule.so")]) { $0.schemes = ["Shop", "tool"] }
        #expect(try other.host.open("shop://Echo/any?value=1") == "1")
        #expect(try other.host.open("tool://Echo/any?value=1") == "1")
        let error = #expect(throws: PluginError.self) { try other.host.open("app://Echo/any?value=1") }
        #expect(error?.code == .invalidURL && error?.message.contains("shop://, tool://") == true)
    }

    @Test func `A port belongs to the target, and a user name is refused`() throws {
        #expect(try failure("app://Echo:80/any?value=1").code == .unknownTarget)
        #expect(try failure("app://me@Echo/any?value=1").code == .invalidURL)
    }

    @Test func `Of equal names, the last one counts, unless a list is declared`() throws {
        #expect(try echo("1&value=2") == "2")
        #expect(try host.open("app://Echo/int?value=x&value=2") == 2)
        #expect(try host.open("app://Echo/list?value=1&value=2&value=") == ["1", "2", ""])
        #expect(try host.open("app://Echo/list?value=1") == ["1"])
    }

    @Test func `A name without a value is the empty string`() throws {
        #expect(try host.open("app://Echo/any?value") == "")
        #expect(try host.open("app://Echo/any?&value=&") == "")
    }

    @Test func `An int takes whole numbers without loss`() throws {
        let cases: [(String, Int?)] = [
            ("3.0", 3), ("3.", nil), (".0", nil), ("3.5", nil), ("1e3", 1000), ("1.5e1", 15), ("15e-1", nil), ("-0", 0),
            ("%2B3", 3), ("+3", nil), ("%203", nil), ("3%20", nil), ("0x10", nil), ("007", 7), ("1_000", nil),
            ("٣", nil),
            ("9223372036854775807", .max), ("9223372036854775807.0", .max), ("9223372036854775808", nil),
            ("-9223372036854775808", .min), ("-9223372036854775809", nil), ("1e19", nil),
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("1e400", nil), ("nan", nil), ("inf", nil), ("-", nil), ("%2B", nil), ("e", nil), ("", nil), ("true", nil),
            ("9007199254740993e0", 9_007_199_254_740_993), ("-9007199254740993E%2B0", -9_007_199_254_740_993),
            ("1e18", 1_000_000_000_000_000_000), ("1e-0", 1), ("3.000", 3), ("3.00000000000000000000", 3),
            ("4503599627370497.5", nil), ("3.00000000000000000001", nil), ("0.00000000000000000001", nil),
            ("9223372036854775807e0", .max), ("922337203685477580.7e1", .max), ("9223372036854775808e0", nil),
            ("-9223372036854775808e0", .min), ("-922337203685477580.8e1", .min), ("-9223372036854775809e0", nil),
            ("92233720368547758070e-1", .max), ("1200e-2", 12), ("1230e-2", nil), ("0.0012e4", 12), ("1e-1", nil),
            ("0e99999999999999999999", 0), ("-0.0e-99999999999999999999", 0), ("1e99999999999999999999", nil),
            ("1e-99999999999999999999", nil), ("00000000000000000000000000003e00000000000000000001", 30),
            ("1e", nil), ("1e%2B", nil), ("e5", nil), ("1e1.0", nil), ("1.2.3", nil), ("1.e1", nil), (".5e1", nil),
            ("-.0", nil), ("1ee1", nil), ("1e1e1", nil), ("--1", nil), ("1-", nil), ("1.-0", nil), ("1.0e%2B-1", nil),
        ]
        for (text, number) in cases {
            guard let number else {
                #expect(try failure("app://Echo/int?value=\(text)").code == .mistypedParameter)
                continue
            }
            #expect(try host.open("app://Echo/int?value=\(text)") == .int(number))
        }
    }

    @Test func `A double takes decimal numbers that it can represent`() throws {
        let cases: [(String, Double?)] = [
            ("3", 3), ("3.5", 3.5), ("-0", 0), (".5", 0.5), ("1e3", 1000), ("1E-3", 0.001), ("%2B1", 1), ("nan", nil),
            ("inf", nil), ("-infinity", nil), ("0x1p3", nil), ("1e400", nil), ("1,5", nil), ("%201", nil), ("", nil),
        ]
        for (text, number) in cases {
            guard let number else {
                #expect(try failure("app://Echo/double?value=\(text)").code == .mistypedParameter)
                continue
            }
            #expect(try host.open("app://Echo/double?value=\(text)") == .double(number))
        }
    }

    @Test func `An int of thousands of digits is decided on all of them`() throws {
        let zeros = String(repeating: "0", count: 5_000)
        #expect(try host.open("app://Echo/int?value=\(zeros)7.\(zeros)") == 7)
        #expect(try host.open("app://Echo/int?value=7\(zeros)e-5000") == 7)
        #expect(try host.open("app://Echo/int?value=0.\(zeros)7e5001") == 7)
        for text in ["7\(zeros)", "7\(zeros)e0", "7.\(zeros)1", "0.\(zeros)7e5000"] {
            #expect(try failure("app://Echo/int?value=\(text)").code == .mistypedParameter)
        }
    }

    @Test func `Bytes take base64 and base64url, strictly`() throws {
        let cases: [(String, [UInt8]?)] = [
            ("", []), ("AQI%3D", [1, 2]), ("AQI=", [1, 2]), ("AQI", [1, 2]), ("AQID", [1, 2, 3]), ("AQ==", [1]),
            ("AQ", [1]),
            ("-_8=", [0xFB, 0xFF]), ("-_8", [0xFB, 0xFF]), ("%2B/8=", [0xFB, 0xFF]), ("AAAA", [0, 0, 0]),
            ("%2B/8", nil), ("-/8=", nil), ("%2B_8", nil), ("+/8=", nil), ("A", nil), ("AQIDB", nil), ("AQ=", nil),
            ("AQ===", nil), ("AQID=", nil), ("AQID====", nil), ("=", nil), ("====", nil), ("AQ==AQ==", nil),
            ("A=Q=", nil),
            ("AR==", nil), ("AR", nil), ("AQJ=", nil), ("AQ%20I=", nil), ("AQI=%0A", nil), ("%20AQI=", nil),
            ("AQ.=", nil),
            ("AQI%00", nil), ("A%C3%A9I=", nil), ("!", nil),
        ]
        for (text, bytes) in cases {
            guard let bytes else {
                #expect(try failure("app://Echo/bytes?value=\(text)").code == .mistypedParameter)
                continue
            }
            #expect(try host.open("app://Echo/bytes?value=\(text)") == .bytes(Bytes(bytes)))
        }
    }

    @Test func `A bool is true, false, 1 or 0`() throws {
        let cases: [String] = ["yes", "no", "TRUE", "True", "t", "on", "2", "-1", "1.0", ""]
        for text in cases {
            #expect(try failure("app://Echo/bool?value=\(text)").code == .mistypedParameter)
        }
    }

    @Test func `Text is converted to the declared type`() throws {
        #expect(try host.open("app://Echo/int?value=-5") == -5)
        #expect(try host.open("app://Echo/double?value=2.5") == 2.5)
        #expect(try host.open("app://Echo/double?value=2") == 2.0)
        for (text, value) in [("true", true), ("1", true), ("false", false), ("0", false)] {
            #expect(try host.open("app://Echo/bool?value=\(text)") == .bool(value))
        }
        #expect(try host.open("app://Echo/bytes?value=AQI%3D") == .bytes([1, 2]))
        #expect(try host.open("app://Echo/string?value=5") == "5")
    }

    @Test func `Text that is not a value of the declared type is an error that names the parameter`() throws {
        let cases: [String] = [
            "int?value=x", "int?value=", "int?value=3.5", "int?value=99999999999999999999", "double?value=x",
            "bool?value=yes", "bytes?value=!", "map?value=1", "object?value=1",
        ]
        for query in cases {
            let error = try failure("app://Echo/\(query)")
            #expect(error.code == .mistypedParameter && error.message.contains("“value”"))
        }
    }

    @Test func `The caller's own parameters override those of the URL`() throws {
        #expect(try host.open("app://Echo/any?value=1", ["value": [2]]) == [2])
        #expect(try host.open("app://Echo/int?value=x", ["value": 2]) == 2)
        #expect(try host.open("app://A/fetchDetail?page=2", ["key": "k"])["page"] == 2)
    }

    @Test func `Missing parameters are errors as in every call`() throws {
        #expect(try failure("app://B/greet").code == .missingParameter)
        #expect(try failure("app://Nobody/greet?name=x").code == .unknownTarget)
    }

    @Test func `Other programs reach remote actions only`() throws {
        #expect(try host.open("app://B/greet?name=x", origin: .remote) == "Hello, x!")
        #expect(try failure("app://A/currencyName?code=EUR", .remote).code == .noRoute)
        #expect(try failure("app://A/nativeSecret", .remote).code == .noRoute)
        #expect(try host.open("app://A/nativeSecret") == "only for this program")
        #expect(try failure("app://Nobody/x", .remote).code == .noRoute)
    }

    @Test func `A notFound that is not remote does not answer other programs`() throws {
        #expect(try host.open("app://Lost/x")["action"] == "x")
        #expect(try failure("app://Lost/x", .remote).code == .noRoute)
    }

    @Test func `A remote action can call actions that are not remote`() throws {
        #expect(try host.open("app://A/price?key=apple", origin: .remote) == "0.5 euro")
    }

    @Test func `Any text leads to an error or a result, never to a trap`() {
        let parts = [
            "app", "://", "/", "?", "=", "&", "%", "%41", "+", "#", "A", "Echo", "any", "value", "漢", "\0", ":",
        ]
        let seed = UInt64.random(in: 0 ... .max)
        var state = seed
        for _ in 0..<3000 {
            var url = Bool.random() ? "app://" : ""
            for _ in 0..<8 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                url += parts[Int(state >> 33) % parts.count]
            }
            do { _ = try host.open(url) } catch { #expect(!error.message.isEmpty, "seed \(seed): \(url)") }
        }
    }
}
