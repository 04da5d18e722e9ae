//! What moves the bytes of a connection: its keeper, a task that sleeps until there is something to do, and in its stead any
//! caller that waits for an answer anyway.
//!
//! A thread that has fallen asleep takes longer to wake than a server takes to answer. So a caller whose answer will be there
//! soon looks for it itself, and while callers do, nobody is woken: the keeper dozes, the socket is not watched.
//!
//! ```text
//!   watching ◄──────────────────────────────────────────────┐
//!      │ a caller leads                                      │ nobody led for a doze, or
//!      ▼                                                     │ there is something to do and nobody leads
//!   dozing ── wakes each DOZE, and looks whether one leads ──┘
//! ```
//!
//! Invariant: whatever happens on the connection is seen by a caller that leads, or by the keeper: at once when calls wait for
//! it, and two dozes later otherwise, even if a caller that leads has fallen silent.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::task::{JoinHandle, unconstrained};
use tokio::time::{Instant, Sleep, sleep};

use super::socket::Led;

/// How often the keeper looks whether callers still lead.
const DOZE: Duration = Duration::from_millis(2);

/// All that a connection has to do, until it ends.
type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Moves the bytes of one connection. Dropping it ends the work.
pub(super) struct Driver {
    seat: Arc<Seat>,
    keeper: JoinHandle<()>,
}

impl Driver {
    /// Starts the keeper on this runtime. `led` is the mark of the socket beneath the work.
    pub(super) fn start(led: Led, work: impl Future<Output = ()> + Send + 'static) -> Self {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let seat = Arc::new(Seat { work: Mutex::new(Some(Box::pin(work))), led, bell, waker });
        let keeper = tokio::spawn(Keeper::new(Arc::clone(&seat)));
        Self { seat, keeper }
    }

    /// Ends the work at once.
    pub(super) fn stop(&self) {
        self.keeper.abort();
    }

    /// One more waits for an answer, until this is dropped.
    pub(super) fn wait(&self) -> Waiting<'_> {
        let others = self.seat.bell.waiting.fetch_add(1, Ordering::SeqCst);
        Waiting { seat: &self.seat, others, leads: false }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Seat {
    /// None once it has ended.
    work: Mutex<Option<Work>>,
    led: Led,
    bell: Arc<Bell>,
    waker: Waker,
}

impl Seat {
    /// Does what can be done now. Who leads goes on with it soon, whatever its runtime thinks of its share.
    fn turn(&self, work: &mut Option<Work>, leads: bool) -> Poll<()> {
        let Some(now) = work else { return Poll::Ready(()) };
        self.led.set(leads);
        self.bell.rung.store(false, Ordering::SeqCst);
        let mut cx = Context::from_waker(&self.waker);
        let turned = if leads { pin!(unconstrained(now)).poll(&mut cx) } else { now.as_mut().poll(&mut cx) };
        if turned.is_ready() {
            *work = None;
        }
        turned
    }
}

/// Does what there is to do when the bell rings.
struct Keeper {
    seat: Arc<Seat>,
    doze: Option<Pin<Box<Sleep>>>,
}

impl Keeper {
    const fn new(seat: Arc<Seat>) -> Self {
        Self { seat, doze: None }
    }

    /// Ready when nobody leads any more.
    fn doze(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.seat.bell.dozing.load(Ordering::SeqCst) {
            let doze = self.doze.get_or_insert_with(|| Box::pin(sleep(DOZE)));
            ready!(doze.as_mut().poll(cx));
            doze.as_mut().reset(Instant::now() + DOZE);
            if !self.seat.bell.driven.swap(false, Ordering::SeqCst) {
                self.seat.bell.dozing.store(false, Ordering::SeqCst);
            }
        }
        self.doze = None;
        Poll::Ready(())
    }
}

impl Future for Keeper {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.seat.bell.keeper.register(cx.waker());
        ready!(self.doze(cx));
        let mut work = self.seat.work.lock().unwrap_or_else(PoisonError::into_inner);
        self.seat.turn(&mut work, false)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let work = self.seat.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(work);
    }
}

/// Somebody who waits for an answer.
pub(super) struct Waiting<'a> {
    seat: &'a Seat,
    others: usize,
    leads: bool,
}

impl Waiting<'_> {
    /// How many waited already when this one began.
    pub(super) const fn others(&self) -> usize {
        self.others
    }

    /// From now on it drives. To be said before it asks: what it asks then wakes nobody.
    pub(super) fn lead(&mut self) {
        if !self.leads {
            self.leads = true;
            self.seat.bell.leaders.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Does what can be done now, if nobody else does.
    pub(super) fn drive(&self) {
        debug_assert!(self.leads, "the keeper would not know that it may doze");
        let mut work = match self.seat.work.try_lock() {
            Ok(work) => work,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let has_ended = self.seat.turn(&mut work, true).is_ready();
        drop(work);
        self.seat.bell.drove(has_ended);
    }

    /// It has looked for long enough: from now on it sleeps until it is woken.
    pub(super) fn sleep(&mut self) {
        if std::mem::take(&mut self.leads) {
            self.seat.bell.left(true);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let others = self.seat.bell.waiting.fetch_sub(1, Ordering::SeqCst) - 1;
        if self.leads {
            self.seat.bell.left(others > 0);
        }
    }
}

/// Rings when there is something to do, and knows who does it.
#[derive(Default)]
struct Bell {
    /// How many wait for answers, and how many of them lead.
    waiting: AtomicUsize,
    leaders: AtomicUsize,
    /// There is something to do.
    rung: AtomicBool,
    /// The keeper need not look.
    dozing: AtomicBool,
    /// Somebody drove since the keeper looked up.
    driven: AtomicBool,
    keeper: AtomicWaker,
}

impl Bell {
    /// The keeper shall look.
    fn wake_keeper(&self) {
        self.dozing.store(false, Ordering::SeqCst);
        self.keeper.wake();
    }

    /// One who leads has driven. The keeper dozes from now on, but for the end, which is its own to see.
    fn drove(&self, has_ended: bool) {
        self.driven.store(true, Ordering::SeqCst);
        if has_ended {
            self.wake_keeper();
        } else if !self.dozing.swap(true, Ordering::SeqCst) {
            self.keeper.wake();
        }
    }

    /// One does not lead any more.
    fn left(&self, somebody_waits: bool) {
        let was_last = self.leaders.fetch_sub(1, Ordering::SeqCst) == 1;
        if was_last && (somebody_waits || self.rung.load(Ordering::SeqCst)) {
            self.wake_keeper();
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        // Who leads and has not driven for two dozes may never do so again.
        if self.leaders.load(Ordering::SeqCst) == 0 || !self.dozing.load(Ordering::SeqCst) {
            self.wake_keeper();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::sync::mpsc;

    use super::*;

    /// Work that says of each thing it did whether it was led, and ends when there is nothing more.
    fn work(led: Led, mut things: mpsc::UnboundedReceiver<()>, did: mpsc::UnboundedSender<bool>) -> Work {
        Box::pin(poll_fn(move |cx| {
            while let Some(()) = ready!(things.poll_recv(cx)) {
                did.send(led.get()).unwrap();
            }
            Poll::Ready(())
        }))
    }

    struct Stage {
        driver: Driver,
        things: mpsc::UnboundedSender<()>,
        did: mpsc::UnboundedReceiver<bool>,
    }

    async fn next(did: &mut mpsc::UnboundedReceiver<bool>) -> Option<bool> {
        let late = Duration::from_secs(60);
        tokio::time::timeout(late, did.recv()).await.expect("somebody does it")
    }

    fn stage() -> Stage {
        let (things, to_do) = mpsc::unbounded_channel();
        let (done, did) = mpsc::unbounded_channel();
        let led = Led::default();
        let driver = Driver::start(led.clone(), work(led, to_do, done));
        Stage { driver, things, did }
    }

    const LED: bool = true;
    const KEPT: bool = false;

    #[tokio::test(start_paused = true)]
    async fn what_happens_while_nobody_leads_is_the_keepers() {
        let mut stage = stage();
        for _ in 0..3 {
            stage.things.send(()).unwrap();
            assert_eq!(next(&mut stage.did).await, Some(KEPT));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_happens_while_one_leads_is_done_by_it() {
        let mut stage = stage();
        let mut waiting = stage.driver.wait();
        waiting.lead();
        for _ in 0..3 {
            stage.things.send(()).unwrap();
            waiting.drive();
            assert_eq!(stage.did.try_recv(), Ok(LED));
        }
        drop(waiting);
        stage.things.send(()).unwrap();
        assert_eq!(next(&mut stage.did).await, Some(KEPT));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_leads_and_falls_silent_is_relieved() {
        let mut stage = stage();
        let mut waiting = stage.driver.wait();
        waiting.lead();
        waiting.drive();
        for _ in 0..3 {
            stage.things.send(()).unwrap();
            assert_eq!(next(&mut stage.did).await, Some(KEPT), "it still leads and does nothing");
        }
        stage.things.send(()).unwrap();
        waiting.drive();
        assert_eq!(stage.did.try_recv(), Ok(LED), "it leads again");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_goes_to_sleep_or_away_leaves_what_it_has_not_done_to_the_keeper() {
        let mut stage = stage();
        for goes_away in [false, true] {
            let mut waiting = stage.driver.wait();
            let other = stage.driver.wait();
            waiting.lead();
            waiting.drive();
            stage.things.send(()).unwrap();
            if goes_away {
                drop(waiting)
            } else {
                waiting.sleep()
            }
            assert_eq!(next(&mut stage.did).await, Some(KEPT));
            drop(other);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_ends_while_it_is_led_ends_for_good() {
        let Stage { mut driver, things, did } = stage();
        drop(things);
        let mut waiting = driver.wait();
        waiting.lead();
        waiting.drive();
        assert!(did.is_closed(), "the work is gone with all that it held");
        drop(waiting);
        (&mut driver.keeper).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn work_goes_with_its_driver_and_when_it_is_stopped() {
        let Stage { driver, things, .. } = stage();
        driver.stop();
        things.closed().await;
        let Stage { driver, things, .. } = stage();
        drop(driver);
        things.closed().await;
    }
}
