// The wording of errors about values. The error that a type throws contains the problem and its path in the value. The
// problem becomes a sentence once the role of the value is known: a parameter, a part of one, or a result.

/// The problem with a value, and where in the value it is.
final class ValueFault: Sendable {
    /// The path in the whole value: `[1].url`; empty for the whole value.
    let path: String
    /// The problem: the end of a sentence without its full stop (`is missing`), or a whole sentence.
    let problem: String
    let isSentence: Bool

    init(path: String, problem: String, isSentence: Bool) {
        (self.path, self.problem, self.isSentence) = (path, problem, isSentence)
    }

    /// The role of the whole value.
    enum Whole {
        /// The role is not known.
        case value
        case parameter(String)
        case result
    }

    /// Returns the message.
    ///
    /// - Parameter owner: The action that the whole value belongs to; empty if it is not known.
    func message(_ whole: Whole, of owner: String) -> String {
        let subject: String
        switch whole {
        case .value where path.isEmpty && isSentence: return owner.isEmpty ? problem : "\(owner): \(problem)"
        case .value where path.isEmpty: subject = owner.isEmpty ? "The value" : "the value"
        case .value: subject = path.hasPrefix("[") ? "value" + path : String(path.drop { $0 == "." })
        case .parameter(let name): subject = path.isEmpty ? "“\(name.shortened)”" : name.shortened + path
        case .result where path.isEmpty: subject = owner.isEmpty ? "The result" : "the result"
        case .result: subject = "result" + path
        }
        return (owner.isEmpty ? "" : owner + ": ") + subject + (isSentence ? ": \(problem)" : " \(problem).")
    }

    /// Returns the step to a field of a record or an entry of a map: `.url`, `[“a b”]`.
    static func step(_ key: String) -> String {
        let isName =
            !key.isEmpty && key.utf8.count <= 200 && key.first!.isNumber == false
            && key.allSatisfy { $0 == "_" || $0.isLetter || $0.isNumber }
        return isName ? "." + key : "[“\(key.shortened)”]"
    }

    /// How many cases of an enumeration a message lists.
    private static let casesMax = 12

    /// Returns what is wrong with a value that is not a case of an enumeration: `is “size”; it may be code or title`.
    static func noCase<T: RawRepresentable>(_ raw: Value, of type: T.Type) -> String {
        guard let known = type as? any (CaseIterable & RawRepresentable).Type else {
            return "is \(raw.quoted), which is not a case of \(type)"
        }
        let cases = cases(of: known)
        guard cases.count > 1 else {
            return "is \(raw.quoted); it may only be \(cases.first ?? "a case of \(type), which has none")"
        }
        if cases.count > casesMax {
            return "is \(raw.quoted); it may be \(cases[..<casesMax].joined(separator: ", ")) or another of the "
                + "\(cases.count) cases of \(type)"
        }
        return "is \(raw.quoted); it may be \(cases.dropLast().joined(separator: ", ")) or \(cases.last!)"
    }

    private static func cases<T: CaseIterable & RawRepresentable>(of type: T.Type) -> [String] {
        type.allCases.map { String(describing: $0.rawValue).shortened }
    }
}

extension Value {
    /// The value in a message: text in quotation marks, anything else as JSON, cut off.
    fileprivate var quoted: String {
        if case .string(let text) = self { "“\(text.shortened)”" } else { json.shortened }
    }
}

extension PluginError {
    /// Makes an error about a value.
    ///
    /// - Parameter problem: What is wrong, the end of a sentence without its full stop: `is missing`.
    static func value(_ code: Code, _ problem: String) -> PluginError {
        PluginError(code, ValueFault(path: "", problem: problem, isSentence: false), .value, of: "")
    }

    /// Returns the error of a part of a value as an error of the whole value.
    ///
    /// - Parameter step: Where the part is: `.url`, `[1]`.
    func within(_ step: String) -> PluginError {
        let problem = fault?.problem ?? message
        let place = ValueFault(
            path: step + (fault?.path ?? ""), problem: problem, isSentence: fault?.isSentence ?? true)
        return PluginError(code, place, .value, of: "", source: source)
    }

    /// Returns the error with a message that states the role of the value. If the error is not about a value, its
    /// message stays unchanged after the name of the owner.
    ///
    /// - Parameters:
    ///   - whole: The role of the value.
    ///   - owner: The action that the value belongs to; empty if it is not known.
    func about(_ whole: ValueFault.Whole, of owner: String) -> PluginError {
        var error = PluginError(
            code, fault ?? ValueFault(path: "", problem: message, isSentence: true), whole, of: owner, source: source)
        error.fault = nil
        return error
    }

    /// The error for a value that is not of the expected type.
    @usableFromInline static func mistyped(_ value: Value, expected: String) -> PluginError {
        let found = value.isNull ? "is null" : "is of type \(value.kind)"
        return .value(.mistypedParameter, "\(found), where \(expected) was expected")
    }

    @usableFromInline static func tooLong(_ count: Int) -> PluginError {
        .value(.invalidValue, "has \(count) bytes; at most \(UInt32.max) are accepted")
    }

    /// Returns the error for a result that is not of the type that the caller expects.
    static func invalidResult(_ error: PluginError, of action: String) -> PluginError {
        var error = error.about(.result, of: action)
        error.code = .invalidResult
        return error
    }

    @usableFromInline static func outOfRange<Number>(_ number: String, _ type: Number.Type) -> PluginError {
        .value(.invalidValue, "is \(number), which does not fit into \(type)")
    }
}

// MARK: Arguments

/// The error of an argument with which the closure of its action cannot be called.
struct ArgumentFailure: Error {
    /// The number of the argument, from 0.
    let number: Int
    let error: PluginError
}

extension ActionDeclaration {
    /// The names that errors about arguments need: that of the action, with its prefix, and those of its parameters.
    func names(_ prefix: String) -> [String] {
        let owner = prefix.hasSuffix("#") ? prefix.dropLast() + "." : prefix == "!" ? "" : prefix
        return [owner + name] + parameters.map(\.name)
    }
}

extension Invocation {
    /// Rejects the call with an error that its action has thrown, and adds the names of the action and the parameter to
    /// it.
    ///
    /// - Parameter names: The names of the action and of its parameters.
    func reject(_ error: any Error, _ names: [String]) {
        switch error {
        case let failure as ArgumentFailure:
            let number = failure.number + 1
            reject(
                failure.error.about(number < names.count ? .parameter(names[number]) : .value, of: names.first ?? ""))
        case let error as PluginError where error.fault != nil: reject(error.about(.value, of: names.first ?? ""))
        default: reject(error)
        }
    }
}
