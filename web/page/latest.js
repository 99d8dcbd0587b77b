// For work that takes longer than what asks for it.

/** A function that does `work`, an async function, once at a time: calls while it runs lead to one more, after it. */
export function latest(work) {
  let going = null, again = false;
  return () => {
    again = true;
    going ??= (async () => {
      while (again) {
        again = false;
        await work();
      }
    })().finally(() => {
      going = null;
    });
    return going;
  };
}
