// Says why the page stays empty where its modules cannot be loaded. It is no module itself: browsers refuse those of files.
document.querySelector('script[type=module]').addEventListener('error', () => {
  const say = () => {
    const main = document.querySelector('main');
    main.innerHTML = '<p class="failure" role="alert"></p>';
    main.firstChild.textContent = location.protocol === 'file:'
      ? 'This browser loads the engine only from a web server. Call ./onestep web in the checkout, or python3 -m http.server ' +
        'in the folder of this file, and open http://127.0.0.1:8000'
      : 'The page could not be loaded: main.js, or what it imports, is missing.';
  };
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', say);
  else say();
});
