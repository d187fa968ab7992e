//! The cost of credentials for a point get: a key and a SAS, each beside calls without credentials,
//! which the same server accepts for its development account.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use trestle_identity::{
    account::{AccountKey, DEVELOPMENT_KEY},
    caller::KeyRange,
    sas::{Scope, mint},
};
use trestle_model::name::AccountName;
use trestle_tests::terms;

use crate::{
    Plan,
    paths::{Bench, CLIENTS, GET, STORED, TABLE, get_message},
    report::{self, Side},
};

/// Share of the point gets without credentials that must remain.
const BUDGET: f64 = 0.9;

/// Measures each kind of credentials in turns with none.
pub(crate) async fn overhead(plan: Plan) {
    let mut bench = Bench::start(|_| true).await.unwrap();
    bench.fill(STORED).await;
    let account = AccountName::development();
    let basic = STANDARD.encode(format!("{account}:{DEVELOPMENT_KEY}"));
    let scope = Scope::of_table(TABLE, &KeyRange::default());
    let token = mint(terms(scope, "r"), account.as_str(), &AccountKey::development()).unwrap();
    let none = bench.connections.clone();
    for (name, value) in [
        ("with a key / without", format!("Basic {basic}")),
        ("with a signature / without", format!("SharedAccessSignature {}", token.to_query())),
    ] {
        let some = none.sending(&value);
        let (mut measured, mut ceiling) = (Side::default(), Side::default());
        for _ in 0..plan.rounds {
            bench.connections = some.clone();
            let (done, cpu) = bench.turn(CLIENTS, plan.turn, GET, get_message).await;
            measured.add(done, cpu);
            bench.connections = none.clone();
            let (done, cpu) = bench.turn(CLIENTS, plan.turn, GET, get_message).await;
            ceiling.add(done, cpu);
        }
        report::compared(&format!("point get, {name}"), &measured, &ceiling, BUDGET);
        let more = measured.cpu_us_per_operation() - ceiling.cpu_us_per_operation();
        println!("  more server CPU for each call {more:>25.2} us");
    }
}
