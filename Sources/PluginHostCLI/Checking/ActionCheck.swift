internal import PluginABI
internal import PluginHost

/// Performs the actions of a module in various ways, one for each check.
struct ActionCheck: Sendable {
    let module: CheckedModule
    let host: PluginHost
    /// Called with a description of each call before the call, so that the last one is known if the process dies.
    let progress: @Sendable (String) -> Void

    private var manifest: CheckedManifest { module.manifest }
    var seed: UInt64 { module.check.seed }
    var timeout: Duration { module.callTimeout }

    /// An object that replies to every call, for parameters that are objects.
    private var callback: Object { host.callback { arguments in arguments.first ?? nil }.object }

    // MARK: Calls

    /// Performs a call and returns its outcome.
    func outcome(_ call: CheckedCall, _ parameters: [String: Value]) async -> Result<Value, PluginError> {
        progress("\(call.title) with \(Value.map(parameters).json.prefix(300))")
        let outcome = await call.perform(Parameters(parameters), in: host, timeout: timeout)
        if case .failure(let error) = outcome, error.code == .moduleCrashed { module.endIfCrashed(host) }
        return outcome
    }

    private func error(_ call: CheckedCall, _ parameters: [String: Value]) async -> PluginError? {
        if case .failure(let error) = await outcome(call, parameters) { error } else { nil }
    }

    var targetCalls: [CheckedCall] { manifest.actions.map { CheckedCall($0.target, $0.action) } }

    /// Returns all actions of targets, and those of the objects that actions return: one object of each type.
    func calls(_ values: inout SeededValues) async -> [CheckedCall] {
        var calls = targetCalls
        var types: Set<String> = []
        var next = 0
        while next < calls.count, types.count < manifest.types.count {
            let call = calls[next]
            next += 1
            guard [.object, .list, .map, .any].contains(call.action.result) else { continue }
            if case .success(let value) = await outcome(call, ordinary(call.action, &values)) {
                calls += objectCalls(of: value, &types)
            }
        }
        return calls
    }

    /// Returns the actions of the module's objects in a value.
    ///
    /// - Parameter types: The types that were already included. New ones are added.
    private func objectCalls(of value: Value, _ types: inout Set<String>) -> [CheckedCall] {
        if let values = value.list ?? value.map.map({ Array($0.values) }) {
            return values.prefix(100).flatMap { objectCalls(of: $0, &types) }
        }
        guard let object = value.object, case let origin = host.origin(of: object), origin.module == manifest.name,
            let type = manifest.types.first(where: { $0.name == origin.type }), types.insert(type.name).inserted
        else { return [] }
        return type.actions.map { CheckedCall(object, type.name, $0) }
    }

    func ordinary(_ action: CheckedManifest.Action, _ values: inout SeededValues) -> [String: Value] {
        action.parameters.reduce(into: [:]) {
            $0[$1.name] = manifest.declared.ordinary($1.type, &values, object: callback)
        }
    }

    // MARK: Names

    func unknown(_ result: inout CheckResult) async {
        var values = SeededValues(seed: seed)
        for target in manifest.targets {
            let name = values.name()
            let hasFallback = target.actions.contains { $0.name == "notFound" }
            let error = await error(CheckedCall(target.name, CheckedManifest.Action(named: name)), [:])
            if !hasFallback, error?.code != .unknownAction {
                result.fail("\(target.name)/\(name) does not exist, but the call was not refused as unknown.")
            }
            if hasFallback, error?.code == .unknownParameter || error?.code == .mistypedParameter {
                result.fail(
                    "\(target.name)/notFound cannot be called: it must declare “action” of type string and "
                        + "“parameters” of type map or any. \(error?.message ?? "")")
            } else if error?.code == .noReply || error?.code == .invalidResult {
                result.fail(error?.message ?? "")
            }
        }
        let nowhere = CheckedCall(values.name(), CheckedManifest.Action(named: "act"))
        if await error(nowhere, [:])?.code != .unknownTarget {
            result.fail("A target that does not exist was called, but the call was not refused as unknown.")
        }
        result.summary = "unknown names in \(counted(manifest.targets.count, "target"))"
    }

    // MARK: Parameters

    func parameters(_ result: inout CheckResult) async {
        var values = SeededValues(seed: seed)
        var count = 0
        for call in await calls(&values) {
            let action = call.action
            let good = ordinary(action, &values)
            func expect(_ code: PluginError.Code, _ parameters: [String: Value], _ what: String) async {
                count += 1
                let error = await error(call, parameters)
                if error?.code != code {
                    result.fail(
                        "\(call.title) with \(what) ended with \(error?.code.rawValue ?? "a result"), not with "
                            + "\(code).", about: call)
                }
            }
            func accept(_ parameters: [String: Value]) async {
                count += 1
                examine(await outcome(call, parameters), call, &result)
            }
            for parameter in action.parameters {
                var without = good
                without[parameter.name] = nil
                if parameter.isRequired {
                    await expect(.missingParameter, without, "no “\(parameter.name.shortened)”")
                } else {
                    await accept(without)
                }
                if let wrong = values.mistyped(parameter.kind) {
                    await expect(
                        .mistypedParameter, good.merging([parameter.name: wrong]) { $1 },
                        "a “\(parameter.name.shortened)” of another type")
                } else {
                    // Every value fits, even one of a type that the action does not expect.
                    for value: Value in [nil, [:], .bytes([]), 1.5] {
                        await accept(good.merging([parameter.name: value]) { $1 })
                    }
                }
            }
            let more = good.merging([values.name(): 1]) { $1 }
            if action.hasRest {
                await accept(more)
            } else {
                await expect(.unknownParameter, more, "one parameter too many")
            }
        }
        result.summary = "\(counted(count, "call")) with missing, superfluous and mistyped parameters"
    }

    func hostile(_ result: inout CheckResult) async {
        var values = SeededValues(seed: seed)
        var count = 0
        for call in await calls(&values) where !call.action.parameters.isEmpty || call.action.hasRest {
            for _ in 0..<24 {
                var parameters: [String: Value] = call.action.parameters.reduce(into: [:]) { parameters, parameter in
                    parameters[parameter.name] = values.hostile(parameter.kind, object: callback)
                }
                if call.action.hasRest { parameters[values.name()] = values.hostile(.any, object: callback) }
                count += 1
                examine(await outcome(call, parameters), call, &result)
            }
        }
        result.summary = "\(counted(count, "call")) with unusual values"
    }

    /// Adds a finding for an outcome that is wrong regardless of the parameters.
    private func examine(
        _ outcome: Result<Value, PluginError>, _ call: CheckedCall, _ result: inout CheckResult
    ) {
        let action = call.action
        switch outcome {
        case .success(let value):
            if let mismatch = manifest.declared.mismatch(of: value, call.title) {
                result.fail("\(call.title) \(mismatch) Correct the value, or what is declared.", about: call)
                return
            }
            guard action.result != .any, value.kind != action.result else { return }
            // JSON writes both numbers alike.
            if action.result == .double, value.kind == .int { return }
            result.fail(
                "\(call.title) is declared to return \(action.result), but returned a value of type \(value.kind). "
                    + "Correct its \"result\".", about: call)
        case .failure(let error):
            switch error.code {
            case .noReply:
                // A synchronous action that replies later looks like one that never replies.
                result.fail(
                    error.message,
                    advice: "Answer every call; an action that replies later is declared with \"async\": true.",
                    about: call)
            case .invalidResult: result.fail(error.message, about: call)
            default:
                guard error.source == manifest.name, error.message.isEmpty else { return }
                result.warn(
                    "\(call.title) failed with the code “\(error.code)” and no message. Add a message that says what "
                        + "happened, and what to do.", about: call)
            }
        }
    }

    // MARK: Threads

    func concurrent(_ result: inout CheckResult) async {
        var values = SeededValues(seed: seed)
        let calls = await calls(&values)
        let object = callback
        let most = Duration.seconds(Int(module.check.seconds)) / (6 * (calls.count + 1))
        let races = RaceCheck(
            perform: { call, parameters in
                let outcome = await call.perform(parameters, in: host, timeout: timeout)
                if case .failure(let error) = outcome, error.code == .moduleCrashed { module.endIfCrashed(host) }
                return outcome
            },
            progress: progress, share: min(.milliseconds(150), most), longShare: min(.milliseconds(1500), most))
        let trials = await races.run(calls) { action in
            action.parameters.reduce(into: [:]) { $0[$1.name] = values.varied($1.kind, object: object) }
        }
        RaceCheck.examine(trials, of: manifest, &result)
    }

    // MARK: Replacement

    func replacement(_ result: inout CheckResult) async {
        var values = SeededValues(seed: seed)
        let calls = targetCalls
        guard !calls.isEmpty else {
            result.summary = "it has no actions"
            return
        }
        let parameters = calls.map { Parameters(ordinary($0.action, &values)) }
        await ReplacementCheck(module: module, host: host, calls: calls, parameters: parameters, progress: progress)
            .run(&result)
    }

    // MARK: Replies and objects

    func replies(_ result: inout CheckResult, log: CheckedModule.Log) async {
        var values = SeededValues(seed: seed)
        var calls = targetCalls
        var types: Set<String> = []
        var next = 0
        while next < calls.count {
            let call = calls[next]
            next += 1
            let before = log.staleReplies
            let outcome = await outcome(call, ordinary(call.action, &values))
            examine(outcome, call, &result)
            if case .failure(let error) = outcome, error.code == .deadlineExceeded {
                result.fail(
                    "\(call.title) did not reply within \(inSeconds(timeout)). Answer every call. If the action "
                        + "intentionally takes longer, pass a longer '--timeout', of which each call gets a quarter.",
                    about: call)
            }
            if let message = log.undeclaredType {
                result.fail(message, advice: "Declare it in \"types\".", about: call)
            }
            if log.staleReplies > before {
                result.fail(
                    "\(call.title) replied twice, or to another action's call. Reply to each call once.", about: call)
            }
            if case .success(let value) = outcome { calls += objectCalls(of: value, &types) }
        }
        for event in manifest.events {
            let before = log.staleReplies
            progress("the event \(event.name)")
            _ = try? await host.post(event.name, Parameters(ordinary(event, &values)), timeout: timeout)
            if log.staleReplies > before {
                result.fail("The subscription to the event \(event.name) replied twice. Reply to each call once.")
            }
        }
        // A second reply from another thread may arrive a little later. There is no upper bound; wait for one second.
        for _ in 0..<100 where log.staleReplies == 0 { try? await Task.sleep(for: .milliseconds(10)) }
        if log.staleReplies > 0, result.findings.isEmpty {
            result.fail(
                "A call was answered a second time, later, by another thread.", advice: log.lastStaleReply ?? "")
        }
        result.summary = "\(counted(calls.count, "action")), each with one answer of the declared type"
    }

    func objects(_ result: inout CheckResult) async {
        result.summary = "objects are destroyed when they have no holders"
        var counts: [Int] = []
        for round in 0..<4 {
            await performRound(SeededValues(seed: seed &+ UInt64(round)))
            // Code on other threads may release its objects a moment later.
            for _ in 0..<30 where module.objects(in: host) > 0 { try? await Task.sleep(for: .milliseconds(10)) }
            counts.append(module.objects(in: host))
        }
        if counts[3] > counts[2], counts[2] > counts[1] {
            result.fail(
                "\(counts[3] - counts[2]) of its objects stay after each round of calls, although they have no other "
                    + "holders\(module.heldObjects(in: host)). Release the object that object_create returns after "
                    + "passing it on.")
        } else if counts[3] > 0 {
            result.warn(
                "It holds \(counts[3]) objects of its own after all calls\(module.heldObjects(in: host)). Its generation "
                    + "cannot be torn down before they are released. Release them in 'willStop'.")
        }
    }

    /// Performs all actions once, and all actions of the objects that they return.
    private func performRound(_ seeded: SeededValues) async {
        var values = seeded
        for call in targetCalls {
            guard case .success(let value) = await outcome(call, ordinary(call.action, &values)) else { continue }
            var types: Set<String> = []
            for call in objectCalls(of: value, &types) { _ = await outcome(call, ordinary(call.action, &values)) }
        }
    }
}
