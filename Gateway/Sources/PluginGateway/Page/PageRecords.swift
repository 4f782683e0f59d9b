import Foundation
import PluginABI
import PluginHost

// What the page shows, as JSON. Its texts come from modules and are of any length, so they are cut off.

extension Value {
    /// The longest text in the state, in bytes.
    static let longestText = 16_384

    static func cut(_ text: String) -> Value {
        guard text.utf8.count > longestText else { return .string(text) }
        return .string("\(String(decoding: text.utf8.prefix(longestText), as: UTF8.self))… (\(text.utf8.count) bytes)")
    }

    /// Milliseconds since 1970.
    static func time(_ time: Date) -> Value { .int(Int(time.timeIntervalSince1970 * 1000)) }

    static func milliseconds(_ duration: Duration?) -> Value {
        duration.map { .double($0 / .milliseconds(1)) } ?? .null
    }

    fileprivate static func entries(_ entries: [String: Value?]) -> Value { .map(entries.compactMapValues(\.self)) }

    /// A record or an enumeration of a manifest. Cases are JSON texts, since a script cannot hold all of their numbers.
    var typeRecord: Value {
        let fields = self["fields"]?.list?.map { field -> Value in
            .entries(["name": field["name"], "type": field["type"]])
        }
        let cases = self["cases"]?.list?.map { Value.string(($0["value"] ?? $0).json) }
        return .entries([
            "name": self["name"], "fields": fields.map(Value.list), "cases": cases.map(Value.list),
        ])
    }
}

extension PluginError {
    var record: Value {
        .entries(["code": .cut(code.rawValue), "message": .cut(message), "source": source.map(Value.cut)])
    }
}

extension ModuleStatus {
    var record: Value {
        .entries([
            "name": name.map(Value.cut), "version": version.map(Value.cut), "state": .string(state.rawValue),
            "file": .cut(file), "generation": generation.map(Value.int), "process": process.map { .int(Int($0)) },
            "memory": usage.map { .int($0.residentBytes) }, "restarts": restarts == 0 ? nil : .int(restarts),
            "since": .time(since), "error": error?.record, "note": note.map(Value.cut),
            "problems": problems.isEmpty ? nil : .list(problems.prefix(100).map(\.record)),
        ])
    }
}

extension GenerationStatus {
    var record: Value {
        .entries([
            "number": .int(number), "name": .cut(name), "version": .cut(version), "state": .string(state.rawValue),
            "created": .time(created), "since": .time(since), "reason": .cut(reason), "calls": .int(calls.count),
            "objects": .int(objects), "process": process.map { .int(Int($0)) },
            "memory": usage.map { .int($0.residentBytes) }, "crash": crash.map(Value.cut),
            "lastWords": lastWords.isEmpty ? nil : .list(lastWords.map(Value.cut)),
        ])
    }
}

extension RouteStatus {
    var record: Value {
        .entries([
            "pattern": .cut(pattern), "action": .cut(action), "owner": .cut(owner), "name": name.map(Value.cut),
            "summary": summary.isEmpty ? nil : .cut(summary),
            "overlaps": overlaps.isEmpty ? nil : .list(overlaps.prefix(20).map(Value.cut)),
            "overlapCount": overlaps.count > 20 ? .int(overlaps.count) : nil,
            "incomplete": overlapsAreComplete ? nil : true, "problem": problem?.record,
        ])
    }
}

extension URLExplanation {
    var record: Value {
        .entries([
            "url": .cut(url), "action": action.map(Value.cut), "module": module.map(Value.cut),
            "route": route.map(Value.cut), "fallback": fallback.map(Value.cut),
            "parameters": .cut(Value.map(parameters).json),
            "demands": demands.isEmpty ? nil : .list(demands.map(Value.cut)), "error": error?.record,
            "others": .list(
                others.map { other in
                    [
                        "pattern": .cut(other.pattern), "action": .cut(other.action), "owner": .cut(other.owner),
                        "reason": .cut(other.reason),
                    ]
                }),
            "incomplete": othersAreComplete ? nil : true,
        ])
    }
}

extension Catalog.Target {
    var record: Value {
        ["name": .cut(name), "summary": .cut(summary), "actions": .list(actions.map(\.record))]
    }
}

extension Catalog.Action {
    fileprivate var record: Value {
        .entries([
            "name": .cut(name), "summary": .cut(summary), "remote": .bool(isRemote), "rest": hasRest ? true : nil,
            "result": .cut(result),
            "parameters": .list(
                parameters.map { parameter in
                    .entries([
                        "name": .cut(parameter.name), "summary": .cut(parameter.summary), "type": .cut(parameter.type),
                        "required": .bool(parameter.isRequired), "default": parameter.fallback.map { .string($0.json) },
                    ])
                }),
        ])
    }
}
