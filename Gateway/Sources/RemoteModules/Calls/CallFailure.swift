import AsyncHTTPClient
import Foundation
import NIOPosix
import PluginABI

/// Why a call that was sent, or should have been, has no result.
struct CallFailure: Sendable {
    /// What is known about the action's effect.
    enum Effect { case none, unknown, known }

    var error: PluginError
    /// Whether the other host, or something on the way to it, is to blame.
    var isUnanswered: Bool
    var effect: Effect
    /// Whether sending the call again can help.
    var isPassing: Bool

    /// The error for the caller.
    ///
    /// - Parameter isRetried: Whether the call was sent twice.
    func error(isRetried: Bool) -> PluginError {
        var error = error
        if isRetried, effect != .known { error.message += " It was sent twice." }
        if effect == .unknown, !error.message.contains("is unknown") {
            error.message += " Whether the call took effect is unknown."
        }
        return error
    }

    /// A connection that failed.
    init(_ failure: any Error, _ answer: AnswerReader.Answer, _ url: String) {
        let text = ForeignText.excerpt(Self.text(failure).utf8, limit: 200)
        if !answer.isSent {
            error = .unavailable("\(url) cannot be reached: \(text).")
            effect = .none
        } else if answer.hasHead {
            error = .unavailable("The connection to \(url) was lost in the middle of an answer: \(text).")
            effect = .unknown
        } else {
            error = .unavailable("The connection to \(url) was lost before an answer came: \(text).")
            effect = .unknown
        }
        (isUnanswered, isPassing) = (true, true)
    }

    /// A stream of events that ends without a result.
    init(endOfEventsFrom url: String) {
        error = .unavailable("The stream of events from \(url) ended without a result.")
        (isUnanswered, effect, isPassing) = (true, .unknown, true)
    }

    private static func text(_ failure: any Error) -> String {
        switch failure {
        case let failure as HTTPClientError where failure == .remoteConnectionClosed: "it was closed by the other side"
        case let failure as HTTPClientError: failure.shortDescription
        case let failure as NIOConnectionError:
            failure.connectionErrors.first.map { "\($0.error)" } ?? failure.dnsAError.map { "\($0)" } ?? "\(failure)"
        default: tls("\(failure)")
        }
    }

    /// Returns the reason in a description of an error of TLS, which is followed by locations in its source.
    private static func tls(_ text: String) -> String {
        guard let start = text.range(of: "OPENSSL_internal:")?.upperBound else { return text }
        return "TLS: " + text[start...].prefix { $0 != " " }
    }

    /// An answer that is not a result.
    init(_ answer: AnswerReader.Answer, _ mount: Mount) {
        let url = mount.url
        (isUnanswered, effect, isPassing) = (true, .unknown, true)
        if answer.status == 401 {
            let token =
                mount.token.map { "The token in “\($0.path)” is not accepted" }
                ?? "A token is needed, and the mount has none:"
            error = PluginError(
                .unauthorized,
                "\(token) by \(url), or by one of the hosts behind it. Check the token files of all of them.")
            effect = .none
            return
        }
        if answer.kind == .problem, !answer.isTooLarge, let error = Self.problem(answer) {
            self.error = error
            (isUnanswered, effect, isPassing) = (false, .known, false)
            // A code of the gateway; modules can have codes of the same name.
            guard error.source == nil else { return }
            switch error.code {
            // If one of several hosts is starting or ending, calls can still be sent to the others.
            case .hostStarting: (effect, isPassing) = (.none, true)
            case .hostStopping: (effect, isPassing) = (.unknown, true)
            case .noRoute:
                self.error = .unavailable("\(url), or one of the hosts behind it, does not offer the action any more.")
                (effect, isPassing) = (.none, true)
            default: break
            }
            return
        }
        if answer.isTooLarge, answer.kind == .json || answer.kind == .bytes {
            error = PluginError(
                .invalidResult, "The result from \(url) has more than \(mount.configuration.answerLimit) bytes.")
            (isUnanswered, effect, isPassing) = (false, .known, false)
            return
        }
        let excerpt = ForeignText.excerpt(answer.body)
        let type = answer.contentType.isEmpty ? "no type" : "the type \(answer.contentType)"
        let length = answer.hasLength || answer.body.isEmpty ? "" : " without a length"
        error = .unavailable(
            "\(url) has answered with the status \(answer.status) and \(type)\(length), which is not from a gateway: "
                + (excerpt.isEmpty ? "it is empty." : "“\(excerpt)”."))
    }

    /// The error that a gateway has sent; `nil` if it is not valid.
    static func problem(_ answer: AnswerReader.Answer) -> PluginError? {
        guard let value = try? Value(foreign: answer.body) else { return nil }
        return PluginError(problem: value)
    }
}

extension PluginError {
    /// Reads the members of a problem; `nil` if they are not valid.
    init?(problem value: Value) {
        guard let code = value["code"]?.string, ForeignText.isName(code, atMost: 128) else { return nil }
        let module = value["module"]?.string
        self.init(
            Code(rawValue: code), ForeignText.message(value["detail"]?.string ?? value["message"]?.string ?? ""),
            source: module.flatMap { ForeignText.isName($0) ? $0 : nil })
    }
}
